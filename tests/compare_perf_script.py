#!/usr/bin/env python3
"""Holds `stackreel script` against `perf script`, block by block.

usage: compare_perf_script.py STACKREEL [--perf PERF] [--fields FIELDS]... [--inline] [FILE...]

Without FILEs the public recordings of $STACKREEL_CORPUS, else of ../shared/corpus beside the
repository, are compared; it succeeds with a word where there are none, or no perf. Fails if a line
differs that none of these faults of perf explains; how often each was met is printed:

  false-last-frame    ffffffffffffffff after a stack that the dump cut off
  lost-last-word      a stack that ends early because the last dumped word was not read
  return-address      a return address that is the first of a function, looked up as it is instead
                      of in the calling function
  nothing-unwound     no user frame, or the sampled one only, where perf has no file of the process
                      or the dump is empty, though registers and frame pointers tell more
  lost-frames         frames left out of the middle or the end of a stack: perf's unwinder keeps what
                      it knew of a process before it forked or called exec
  old-program         a frame of the program that called exec, whose mappings perf keeps
  plt-by-position     a PLT stub named by its position among the relocations, not by the slot it
                      jumps through, or taken for the symbol before it
  foreign-kernel      functions of the running kernel for a recording of another one
  unasked-symbols     functions printed in pipe mode though only ip was asked for

Not compared is the text of tracepoints (the field "trace"), which stackreel does not print.
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys

FRAME = re.compile(r"^\t( *[0-9a-f]+)(?: (.*?))?(?: \((.*)\))?$")
FALSE_FRAME = "\tffffffffffffffff"
FIELDS = ["comm,tid,time,event,ip", "comm,tid,time,event,ip,sym,dso", ""]


def find_corpus():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    root = os.environ.get("STACKREEL_CORPUS", os.path.join(here, "..", "shared", "corpus"))
    public = os.path.join(root, "public")
    return sorted(os.path.join(folder, name)
                  for folder, _, names in os.walk(public) for name in names)


def run(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def blocks(text):
    """Header lines, each with the frame lines under it."""
    out = []
    for line in text.split("\n"):
        if line.startswith("\t") and out:
            out[-1].append(line)
        elif line:
            out.append([line])
    return out


def symbol_of(line):
    match = FRAME.match(line)
    return (match[2] or "") if match else ""


def without_symbol(line):
    match = FRAME.match(line)
    if match:
        return (match[1], match[3])
    # "… event:  IP SYM (DSO)"
    return re.sub(r"(: +[0-9a-f]+) .* \(", r"\1 (", line)


def is_subsequence(short, long):
    rest = iter(long)
    return all(line in rest for line in short)


def is_kernel(line):
    match = FRAME.match(line)
    return match[1].lstrip().startswith("ffff") if match else "([kernel.kallsyms])" in line


class Comparison:
    def __init__(self, is_this_kernel, asked_for_symbols):
        self.is_this_kernel = is_this_kernel
        self.asked_for_symbols = asked_for_symbols
        self.faults = collections.Counter()
        self.differences = []
        self.lines = 0

    def compare(self, theirs, ours):
        theirs, ours = blocks(theirs), blocks(ours)
        if len(theirs) != len(ours):
            self.differences.append((f"{len(theirs)} samples", f"{len(ours)} samples"))
        for a, b in zip(theirs, ours):
            self.compare_block(a, b)

    def compare_block(self, theirs, ours):
        truncated = theirs[-1].startswith(FALSE_FRAME)
        if truncated and not ours[-1].startswith(FALSE_FRAME):
            self.faults["false-last-frame"] += 1
            theirs = theirs[:-1]
            if len(ours) > len(theirs):
                self.faults["lost-last-word"] += 1
                ours = ours[:len(theirs)]
        missing = len(ours) - len(theirs)
        if missing > 0 and len(theirs) <= 2 + sum(map(is_kernel, theirs[1:])):
            self.faults["nothing-unwound"] += 1
            ours = ours[:len(theirs)]
        if len(theirs) < len(ours) and is_subsequence(*map(self.comparable, (theirs, ours))):
            self.faults["lost-frames"] += 1
            return
        if len(theirs) != len(ours):
            self.differences.append(("\n".join(theirs), "\n".join(ours)))
            return
        for index, (a, b) in enumerate(zip(theirs, ours)):
            self.lines += 1
            if a != b and not self.explains(index, a, b):
                self.differences.append((a, b))

    @staticmethod
    def comparable(block):
        """Frames without the names of PLT stubs."""
        return [without_symbol(line) if "plt" in line or "[unknown]" in line else line
                for line in block]

    @staticmethod
    def is_of_old_program(a, b):
        """Perf shows a file's offset, and we the address, since no file is mapped there now."""
        a, b = FRAME.match(a), FRAME.match(b)
        if not a or not b or b[3] not in (None, "[unknown]"):
            return False
        offset, address = int(a[1], 16), int(b[1], 16)
        return offset != address and offset % 4096 == address % 4096

    def explains(self, index, a, b):
        if index == 0 and a.startswith(b) and b.endswith(": "):
            return True  # the text of a tracepoint
        if self.is_of_old_program(a, b):
            self.faults["old-program"] += 1
            return True
        if without_symbol(a) != without_symbol(b):
            return False
        if not self.asked_for_symbols:
            self.faults["unasked-symbols"] += 1
            return True
        if not self.is_this_kernel and "[unknown]" in b and is_kernel(b):
            self.faults["foreign-kernel"] += 1
            return True
        if "@plt" in b:
            self.faults["plt-by-position"] += 1
            return True
        if index > 1 and (symbol_of(a).endswith("+0x0") or "+0x" not in symbol_of(a)):
            self.faults["return-address"] += 1
            return True
        return False


def recorded_kernel(args, path):
    _, header, _ = run([args.perf, "report", "--header-only", "-i", path])
    match = re.search(r"^# os release : (\S+)", header, re.MULTILINE)
    return match[1] if match else None


def compare_file(args, path, fields):
    """True if all is the same or explained."""
    chosen = ["-F", fields] if fields else []
    inline = [] if args.inline else ["--no-inline"]
    code, theirs, errors = run([args.perf, "script", *inline, *chosen, "-i", path])
    if code != 0:
        print(f"{path}: perf refuses it: {errors.strip().splitlines()[-1] if errors else code}")
        return True
    code, ours, errors = run([args.stackreel, "script", *inline, *chosen, "-i", path])
    if code not in (0, 4):
        print(f"{path}: stackreel fails: {errors.strip()}")
        return False
    is_this_kernel = recorded_kernel(args, path) == os.uname().release
    comparison = Comparison(is_this_kernel, not fields or "sym" in fields)
    comparison.compare(theirs, ours)
    faults = ", ".join(f"{name} {count}" for name, count in sorted(comparison.faults.items()))
    verdict = "same" if theirs == ours else "same but for faults of perf"
    if comparison.differences:
        verdict = f"{len(comparison.differences)} DIFFERENCES"
    print(f"{path}: -F {fields or '(usual)'}: {comparison.lines} lines, {verdict}"
          + (f" ({faults})" if faults else ""))
    for a, b in comparison.differences[:args.show]:
        print(f"  perf:      {a[:2000]}\n  stackreel: {b[:2000]}")
    return not comparison.differences


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stackreel")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--perf", default="perf")
    parser.add_argument("--fields", action="append")
    parser.add_argument("--inline", action="store_true")
    parser.add_argument("--show", type=int, default=3)
    args = parser.parse_args()
    files = args.files or find_corpus()
    if not files or shutil.which(args.perf) is None:
        print("skipped: there is no perf, or there are no recordings to compare with")
        return 0
    results = [compare_file(args, path, fields)
               for path in files for fields in args.fields or FIELDS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
