#!/usr/bin/env python3
"""Holds the reader and the writer against perf over the recordings of others.

usage: compare_perfdata.py COUNT_RECORDS COPY_RECORDING [--perf PERF] [FILE...]

Without FILEs the public recordings of $STACKREEL_CORPUS, else of ../shared/corpus beside the
repository, are taken; it succeeds with a word where there are none, or no perf. For each file:

  counts   the records by type are as many as `perf report --stats` says; where perf refuses the file
           or gives up on it, the reader still reaches its end, or the text that perf printed behind
           it
  copies   what the writer makes of it (a file, a pipe, each also compressed, and with all records
           taken apart and put together again) is read by perf without a new word on standard
           error, with the same `perf script` and all of the header
  swapped  what it makes of it in the other byte order is read by perf alike, and by the reader with
           the same counts; only recordings where perf itself swaps all that is shown
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

SCRIPT = ["script", "-F", "comm,pid,tid,time,event,ip,sym,dso,misc",
          "--show-task-events", "--show-mmap-events", "--show-lost-events", "--show-switch-events",
          "--show-namespace-events"]
COPIES = [[], ["--level=3"], ["--pipe"], ["--pipe", "--level=3"], ["--decode"],
          ["--decode", "--pipe"]]
# Names that perf gives a type by another word.
PERF_NAMES = {"ATTR": "HEADER_ATTR", "EVENT_TYPE": "HEADER_EVENT_TYPE",
              "TRACING_DATA": "HEADER_TRACING_DATA", "BUILD_ID": "HEADER_BUILD_ID",
              "FEATURE": "HEADER_FEATURE"}
# perf reads MMAP2 of kernels before 3.16, which lack two fields, as if they had them.
OLD_MMAP2 = {"perf.data.true.v2"}
# What perf says of any recording made elsewhere.
HARMLESS = re.compile(r"No kallsyms or vmlinux with build-id \S+ was found"
                      r"|unwind: target platform=\S+ is not supported"
                      r"|Warning:.*symbol.*", re.IGNORECASE)
# Header lines that depend on the file's name, date and layout; attrs are written smaller, and the
# level and ratio of compression are the writer's.
HEADER_NOISE = re.compile(r"^# (captured on|header version|data offset|data size|feat offset|"
                          r"compressed|time of|sample duration|missing features|=+)")

# perf does not show this feature where it comes as a record.
NOT_IN_PIPES = ("# contains samples with branch stack",)

# perf 6.1 swaps neither dumped stacks, nor EVENT_UPDATE, nor prot and flags of MMAP2.
SWAPPED = {"perf.data.armv7-3.4", "perf.data.i686-3.4", "perf.data.branch-4.14",
           "perf.data.lost_samples-4.4", "perf.data.remmap-3.2", "perf.data.singleprocess-3.4",
           "perf.data.singleprocess-3.8", "perf.data.ctx_switch_namespaces-4.14",
           "perf.data.group_desc-4.14", "perf.data.proc.map.timeout-3.18", "perf.data.true.v1"}
SWAPPED_SCRIPT = ["script", "-F", "comm,tid,time,event,ip", "--show-task-events",
                  "--show-mmap-events", "--show-lost-events"]


def find_corpus():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    root = os.environ.get("STACKREEL_CORPUS", os.path.join(here, "..", "shared", "corpus"))
    public = os.path.join(root, "public")
    return sorted(os.path.join(folder, name)
                  for folder, _, names in os.walk(public) for name in names)


def run(command, stdin=subprocess.DEVNULL):
    done = subprocess.run(command, stdin=stdin, capture_output=True, check=False)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def perf_on(perf, arguments, path, pipe):
    """Runs perf on `path`, given as a pipe if it is one."""
    if not pipe:
        return run([perf] + arguments + ["-i", path])
    with open(path, "rb") as stream:
        return run([perf] + arguments + ["-i", "-"], stream)


def is_pipe(path):
    with open(path, "rb") as stream:
        return stream.read(16)[8:] in (b"\x10" + bytes(7), bytes(7) + b"\x10")


def our_counts(count_records, path):
    code, out, err = run([count_records, path])
    if code != 0:
        return None, err.strip()
    lines = out.strip().split("\n")
    counts = dict(line.rsplit(" ", 1) for line in lines[:-1])
    return {name: int(count) for name, count in counts.items()}, lines[-1]


def perf_counts(perf, path):
    """By type, or None where perf does not read the file."""
    code, out, err = perf_on(perf, ["report", "--stats"], path, is_pipe(path))
    found = re.findall(r"^ +([A-Z_0-9]+) events: +(\d+)", out.split("\n\n")[0], re.M)
    if "unexpected end of event stream" in err:  # --stats does not pass over TRACING_DATA
        code, out, err = perf_on(perf, ["report", "-D"], path, is_pipe(path))
        dumped = re.findall(r"\]: PERF_RECORD_([A-Z_0-9]+)", out)
        found = [(name, dumped.count(name)) for name in set(dumped)]
    if code != 0 or "failed to process" in err:
        return None
    counts = {}
    for name, count in found:  # of all events first, then of each
        counts.setdefault(PERF_NAMES.get(name, name), int(count))
    # Ours arrive unpacked; perf counts what it unpacks besides.
    for name in ("TOTAL", "COMPRESSED"):
        counts.pop(name, None)
    return counts


def check_counts(arguments, path):
    ours, end = our_counts(arguments.count_records, path)
    if ours is None:
        return [f"cannot be read: {end}"]
    theirs = perf_counts(arguments.perf, path)
    if theirs is not None:
        wrong = [f"{name}: {ours.get(name, 0)}, perf has {theirs.get(name, 0)}"
                 for name in sorted(ours.keys() | theirs.keys())
                 if ours.get(name, 0) != theirs.get(name, 0)]
        return wrong + ([] if end == "end complete" else [end])
    with open(path, "rb") as stream:
        content = stream.read()
    if end != "end complete":
        offset = int(end.split()[1])
        if not content[offset:].startswith(b"[ perf record"):
            return [end]
    if ours.get("SAMPLE", 0) == 0:
        return ["no sample"]
    return []


def words_of(text):
    return [line for line in text.split("\n") if line and not HARMLESS.search(line)]


def header_of(perf, path, pipe):
    _, out, err = perf_on(perf, ["report", "--header-only"], path, pipe)
    lines = [re.sub(r", size = \d+", "", line) for line in out.split("\n")
             if not HEADER_NOISE.match(line)]
    return lines, words_of(err)


def check_copy(arguments, path, options, expected, scratch):
    copy = os.path.join(scratch, "copy.data")
    code, _, err = run([arguments.copy_recording] + options + [path, copy])
    if code != 0:
        return [f"cannot be copied: {err.strip()}"]
    pipe = "--pipe" in options
    code, out, err = perf_on(arguments.perf, SCRIPT, copy, pipe)
    said = words_of(err)
    header, header_said = header_of(arguments.perf, copy, pipe)
    problems = []
    if code != 0:
        problems.append(f"perf script ends with {code}")
    if expected is None:  # perf does not read the original: that it reads the copy is enough
        return problems + ([f"perf says: {said[0]}"] if said else [])
    if said and said != expected["said"]:
        problems.append(f"perf says: {said[0]}")
    if header_said:
        problems.append(f"perf says: {header_said[0]}")
    if out != expected["script"] and not ("--decode" in options and
                                          os.path.basename(path) in OLD_MMAP2):
        problems.append("perf script differs")
    missing = [line for line in expected["header"] if line not in header and
               not (pipe and line in NOT_IN_PIPES)]
    if missing:
        problems.append(f"the header lacks: {missing[0]}")
    return problems


def check_copies(arguments, path, scratch):
    code, script, err = perf_on(arguments.perf, SCRIPT, path, is_pipe(path))
    expected = None
    if code == 0:
        header, _ = header_of(arguments.perf, path, is_pipe(path))
        expected = {"script": script, "said": words_of(err), "header": header}
    problems = []
    for options in COPIES:
        problems += [f"copy {' '.join(options) or 'as a file'}: {problem}"
                     for problem in check_copy(arguments, path, options, expected, scratch)]
    return problems


def check_swapped(arguments, path, scratch):
    if os.path.basename(path) not in SWAPPED:
        return []
    copy = os.path.join(scratch, "copy.data")
    code, _, err = run([arguments.copy_recording, "--big-endian", path, copy])
    if code != 0:
        return [f"cannot be copied in the other byte order: {err.strip()}"]
    problems = []
    if our_counts(arguments.count_records, copy) != our_counts(arguments.count_records, path):
        problems.append("swapped: other counts")
    texts = []
    for recording in (path, copy):
        _, out, err = run([arguments.perf] + SWAPPED_SCRIPT + ["-i", recording])
        texts.append([line for line in out.split("\n") if "PERF_RECORD_MMAP2" not in line])
    if words_of(err):
        problems.append(f"swapped: perf says: {words_of(err)[0]}")
    if texts[0] != texts[1]:
        problems.append("swapped: perf script differs")
    return problems


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("count_records")
    parser.add_argument("copy_recording")
    parser.add_argument("--perf", default=shutil.which("perf"))
    parser.add_argument("files", nargs="*")
    arguments = parser.parse_args()
    files = arguments.files or find_corpus()
    if not files or arguments.perf is None:
        print("skipped: no recordings" if not files else "skipped: no perf")
        return 0
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        for path in files:
            problems = (check_counts(arguments, path) + check_copies(arguments, path, scratch) +
                        check_swapped(arguments, path, scratch))
            failures += bool(problems)
            for problem in problems:
                print(f"{path}: {problem}")
    print(f"{len(files)} recordings, {failures} with differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
