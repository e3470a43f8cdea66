#!/usr/bin/env python3
"""Holds `stackreel script` against `perf script`, block by block.

usage: compare_perf_script.py STACKREEL [FILE...] [--perf PERF] [--fields FIELDS]... [--inline]

Without FILEs the public recordings of $STACKREEL_CORPUS, else of ../shared/corpus beside the
repository, are compared; it succeeds with a word where there are none, or no perf. Fails if a line
or a stack differs and no cause is proven for that very line or stack; docs/perf-differences.md
tells the causes at length. Counted by cause are

stacks, which may differ from the frame on whose caller perf did not find, or found wrong:
  empty-dump          no byte of stack was dumped
  lost-last-word      the caller's address is the last word of the dump
  wrong-base          perf looks for the frame's unwind table at a wrong address, by the lowest
                      mapping of its file: of the program before exec, or of one that reads it
  no-frame-entry      no FDE covers the frame by readelf; a PLT stub, the tail of a function
  below-stack-pointer  perf, asked about this sample alone, reads a popped slot below the dump
  no-file             the frame's file is not on this machine, so perf has no unwind table; or none
                      of the process's files is, and perf does not even show the sampled frame
  false-last-frame    ffffffffffffffff where the dump ends before the stack does: it is full, or perf,
                      asked about this sample alone, reads beyond it
lines:
  old-program         a frame in a mapping of the program that called exec, which perf keeps
  return-address      a return address that is the first of a function by perf's own offset, looked
                      up as it is instead of in the calling function
  plt-by-position     a PLT stub that objdump names as we do
  foreign-kernel      functions of the running kernel for a recording of another one
  unasked-symbols     functions printed in pipe mode though only ip was asked for
"""

import argparse
import collections
import itertools
import json
import os
import re
import shutil
import subprocess
import sys

from support.perf_facts import Unwinding, has_frame_entry, read_facts
from support.plt_names import plt_names

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


def without_symbol(line):
    match = FRAME.match(line)
    if match:
        return (match[1], match[3])
    # "… event:  IP SYM (DSO)"
    return re.sub(r"(: +[0-9a-f]+) .* \(", r"\1 (", line)


def is_kernel(line):
    match = FRAME.match(line)
    return match[1].lstrip().startswith("ffff") if match else "([kernel.kallsyms])" in line


def around(theirs, ours, same):
    """The header and the lines about the first difference."""
    start = max(1, same - 1)
    return tuple("\n".join(line[:120] for line in [block[0], *block[start:start + 4]])
                 for block in (theirs, ours))


class Recording:
    """A file, and what is known of its samples: from perf (facts), and our own frames."""

    def __init__(self, args, path):
        self.path = path
        self.perf = args.perf
        _, header, _ = run([args.perf, "report", "--header-only", "-i", path])
        release = re.search(r"^# os release : (\S+)", header, re.MULTILINE)
        self.is_this_kernel = release is not None and release[1] == os.uname().release
        with open(path, "rb") as file:
            self.is_pipe = int.from_bytes(file.read(16)[8:], "little") == 16
        self.facts = read_facts(args.perf, path)
        inline = [] if args.inline else ["--no-inline"]
        _, text, _ = run([args.stackreel, "script", *inline, "--format=json", "-i", path])
        self.ours = [json.loads(line) for line in text.splitlines()]
        self.full_dump = max((facts.stack_size or 0 for facts in self.facts), default=0)

    def has_same_samples(self, count):
        return len(self.facts) == count and len(self.ours) == count


class Sample:
    """One sample's proofs."""

    def __init__(self, recording, index):
        self.recording = recording
        self.facts = recording.facts[index]
        self.frames = recording.ours[index]["frames"]
        self.time_ns = recording.ours[index].get("time_ns", 0)
        self.end = recording.ours[index].get("stack_end")

    def address(self, index):
        return int(self.frames[index]["ip"], 16)

    def is_first_user_frame(self, index):
        return all(frame.get("kernel") for frame in self.frames[:index])

    def why_no_caller(self, index):
        """Why perf did not find the caller of our frame `index`, or found a wrong one."""
        if not self.facts.stack_size and self.is_first_user_frame(index + 1):
            return "empty-dump"  # perf shows no user frame then, not even the sampled one
        if index < 0 or self.frames[index].get("kernel"):
            # Nor does it know the process's ABI but from a file mapped there.
            return None if any(map(os.path.isfile, self.facts.paths())) else "no-file"
        frame = self.frames[index]
        if index + 1 < len(self.frames) and self.facts.last_word == self.address(index + 1):
            return "lost-last-word"
        path = frame.get("dso", "")
        if not os.path.isfile(path):
            return "no-file"
        address, svma = self.address(index), int(frame["dso_offset"], 16)
        if self.facts.takes_wrong_base(path, address - svma):
            return "wrong-base"
        if not has_frame_entry(path, svma - (0 if self.is_first_user_frame(index) else 1)):
            return "no-frame-entry"
        return "below-stack-pointer" if self.unwinding().reads_below() else None

    def unwinding(self):
        return Unwinding(self.recording.perf, self.recording.path, self.time_ns)

    def is_cut_off(self):
        full = self.facts.stack_size == self.recording.full_dump
        return (full and self.end == "dump exhausted") or self.unwinding().reads_beyond()


class Comparison:
    def __init__(self, recording, asked_for_symbols):
        self.recording = recording
        self.asked_for_symbols = asked_for_symbols
        self.causes = collections.Counter()
        self.differences = []
        self.lines = 0
        self.stacks = 0

    def compare(self, theirs, ours):
        theirs, ours = blocks(theirs), blocks(ours)
        if len(theirs) != len(ours) or not self.recording.has_same_samples(len(theirs)):
            self.differences.append((f"{len(theirs)} samples", f"{len(ours)} samples"))
            return
        for index, (a, b) in enumerate(zip(theirs, ours)):
            self.compare_block(index, a, b)

    def compare_block(self, index, theirs, ours):
        self.stacks += 1
        sample = Sample(self.recording, index)
        has_false_frame = len(theirs) > 1 and theirs[-1].startswith(FALSE_FRAME)
        has_false_frame = has_false_frame and not ours[-1].startswith(FALSE_FRAME)
        if has_false_frame:
            theirs = theirs[:-1]
        same = 0
        while (same < min(len(theirs), len(ours)) and
               self.explain_line(sample, same, theirs[same], ours[same])):
            same += 1
        self.lines += same
        if same == len(theirs) == len(ours):
            cause = "false-last-frame" if has_false_frame and sample.is_cut_off() else None
            proven = cause is not None or not has_false_frame
        else:
            # Frame n is line n + 1; the one before the first difference is what perf stepped from.
            cause = sample.why_no_caller(same - 2) if same >= 1 else None
            proven = cause is not None
        if not proven:
            self.differences.append(around(theirs, ours, same))
        elif cause:
            self.causes[cause] += 1

    def explain_line(self, sample, index, a, b):
        """Whether the lines are the same, or their difference is explained, and counted."""
        if a == b:
            return True
        cause = self.cause_of_line(sample, index, a, b)
        if cause:
            self.causes[cause] += 1
        return cause is not None

    def cause_of_line(self, sample, index, a, b):
        frame = sample.frames[index - 1] if 0 < index <= len(sample.frames) else None
        if without_symbol(a) != without_symbol(b):
            old = frame and sample.facts.is_left_from_old_program(int(frame["ip"], 16) - 1)
            return "old-program" if old else None
        if self.recording.is_pipe and not self.asked_for_symbols:
            return "unasked-symbols"
        if not self.recording.is_this_kernel and "[unknown]" in b and is_kernel(b):
            return "foreign-kernel"
        if frame is None:
            return None
        if frame.get("sym", "").endswith("@plt"):
            # perf prints, and objdump names, the stub of the address looked up.
            lookup = int(frame["dso_offset"], 16) - (1 if index > 1 else 0)
            same = plt_names(frame["dso"]).is_name_at(frame["sym"], lookup)
            return "plt-by-position" if same else None
        their_frames = sample.facts.frames
        if index > 1 and index <= len(their_frames) and "+0x0 " in their_frames[index - 1]:
            return "return-address"
        return None


def print_causes(causes, recording, fields, comparison, same):
    total = ", ".join(f"{name} {count}" for name, count in sorted(causes.items()))
    verdict = "same" if same else "same but for proven causes"
    if comparison.differences:
        verdict = f"{len(comparison.differences)} DIFFERENCES"
    print(f"{recording.path}: -F {fields or '(usual)'}: {comparison.stacks} samples, "
          f"{comparison.lines} lines, {verdict}" + (f" ({total})" if total else ""))


def compare_file(args, path, totals):
    """True if all is the same or explained."""
    code, _, errors = run([args.perf, "script", "--no-inline", "-F", "comm,event", "-i", path])
    if code != 0:
        print(f"{path}: perf refuses it: {errors.strip().splitlines()[-1] if errors else code}")
        return True
    recording = Recording(args, path)
    good = True
    for fields in args.fields or FIELDS:
        chosen = ["-F", fields] if fields else []
        inline = [] if args.inline else ["--no-inline"]
        code, theirs, errors = run([args.perf, "script", *inline, *chosen, "-i", path])
        if code != 0:
            print(f"{path}: -F {fields}: perf refuses: {errors.strip()}")
            continue
        code, ours, errors = run([args.stackreel, "script", *inline, *chosen, "-i", path])
        if code not in (0, 4):
            print(f"{path}: stackreel fails: {errors.strip()}")
            good = False
            continue
        comparison = Comparison(recording, not fields or "sym" in fields)
        comparison.compare(theirs, ours)
        print_causes(comparison.causes, recording, fields, comparison, theirs == ours)
        for a, b in comparison.differences[:args.show]:
            print(f"  perf:      {a}\n  stackreel: {b}")
        good = good and not comparison.differences
        totals[fields or "(usual)"].append((path, comparison))
    return good


def compare_records(args, path):
    """Records that are no samples: the same lines, but for the width of names, which perf leaves out
    where it prints stacks, in pipes also unasked. The first kernels with MMAP2 wrote no protection;
    perf takes the name for it."""
    shown = [f"--show-{kind}-events"
             for kind in ("task", "mmap", "switch", "namespace", "cgroup", "bpf")]
    options = ["--no-inline", "-F", "comm,tid,time,event", *shown, "-i", path]
    code, theirs, _ = run([args.perf, "script", *options])
    if code != 0:
        return True
    _, ours, _ = run([args.stackreel, "script", *options])
    theirs, ours = ([line.lstrip() for line in text.split("\n") if "PERF_RECORD_" in line]
                    for text in (theirs, ours))
    same = 0
    for a, b in itertools.zip_longest(theirs, ours, fillvalue=""):
        if a != b and not ("]: ---p " in b and a.split("]: ")[0] == b.split("]: ")[0]):
            print(f"{path}: RECORDS DIFFER\n  perf:      {a}\n  stackreel: {b}")
            return False
        same += a == b
    print(f"{path}: {same} of {len(ours)} records are shown the same")
    return True


def print_table(totals):
    """Counts by cause, a column a file; of the field set with most columns compared."""
    for fields, compared in totals.items():
        names = sorted({name for _, comparison in compared for name in comparison.causes})
        print(f"\n-F {fields}\n{'':20}" +
              "".join(f"{os.path.basename(path)[-16:]:>18}" for path, _ in compared))
        rows = [("samples", lambda c: c.stacks), ("lines the same", lambda c: c.lines)]
        rows += [(name, lambda c, name=name: c.causes[name]) for name in names]
        rows += [("not explained", lambda c: len(c.differences))]
        for title, value in rows:
            print(f"{title:20}" + "".join(f"{value(c):18}" for _, c in compared))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stackreel")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--perf", default="perf")
    parser.add_argument("--fields", action="append")
    parser.add_argument("--inline", action="store_true")
    parser.add_argument("--show", type=int, default=3)
    args = parser.parse_intermixed_args()
    files = args.files or find_corpus()
    if not files or shutil.which(args.perf) is None:
        print("skipped: there is no perf, or there are no recordings to compare with")
        return 0
    totals = collections.defaultdict(list)
    results = [compare_file(args, path, totals) for path in files]
    results += [compare_records(args, path) for path in files]
    if args.files:
        print_table(totals)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
