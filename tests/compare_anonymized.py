#!/usr/bin/env python3
"""Holds recordings against what they are anonymised, by perf's report and by the verifier.

usage: compare_anonymized.py STACKREEL [FILE...] [--perf PERF] [--swap COPY_RECORDING]
                             [--at-most BYTES] [--with NAME...]

Without FILEs the recordings of $STACKREEL_CORPUS, else of ../shared/corpus beside the repository,
are taken, those of no more BYTES than asked for, and those whose paths end in a NAME, which must be
there; it exits 77, which skips a test, where there are none. Each is anonymised, and what comes of it
once more, and again into a pipe, and at the higher levels; each result must pass
`anonymize --verify`. So must those of a copy in the other byte order, which COPY_RECORDING makes.
Where perf is installed, `perf report --sort dso,sym` must show the same samples of the same functions
for all of them. An address that perf has no symbol for is another one afterwards, and left out here;
the verifier compares modules and offsets.
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

ADDRESS = re.compile(r"0x[0-9a-f]{8,16}")


def find_corpus():
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    root = os.environ.get("STACKREEL_CORPUS", os.path.join(here, "..", "shared", "corpus"))
    return sorted(os.path.join(folder, name)
                  for part in ("public", "arm64/data")
                  for folder, _, names in os.walk(os.path.join(root, part)) for name in names)


def run(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def report_lines(perf, path, *options):
    """The report's rows, sorted: samples, object, function. None if perf cannot read it."""
    code, out, err = run([perf, "report", "-i", path, "--stdio", "--no-children", "-g", "none",
                          "-F", "sample,dso,sym", "--kallsyms", "/dev/null", "--force", *options])
    if code != 0:
        return None, err.strip().split("\n")[-1]
    rows = collections.Counter()
    for line in out.split("\n"):
        if not line.strip() or line.startswith("#"):
            continue
        count, rest = line.split(maxsplit=1)
        rows[" ".join(ADDRESS.sub("ADDRESS", rest).split())] += int(count)
    return sorted(f"{count} {row}" for row, count in rows.items()), ""


def check_levels(stackreel, path, folder, levels):
    """What is wrong with the recording at these levels."""
    problems = []
    made = os.path.join(folder, "level")
    for level in levels:
        code, out, err = run([stackreel, "anonymize", path, "-o", made, "--" + level])
        if code == 0:
            code, out, err = run([stackreel, "anonymize", "--verify", path, made, "--" + level])
        if code != 0:
            problems.append(f"--{level}: exit {code}: {(out + err).strip()[:500]}")
    return problems


def compare_swapped(stackreel, copy_recording, path, folder):
    """The same of a copy in the other byte order, if one can be made."""
    swapped = os.path.join(folder, "swapped")
    code, _, err = run([copy_recording, "--big-endian", path, swapped])
    if code != 0:
        return [f"it cannot be swapped: {err.strip()[:200]}"]
    levels = ("addresses", "identity", "symbols")
    return ["swapped: " + problem for problem in check_levels(stackreel, swapped, folder, levels)]


def compare(stackreel, perf, path, folder):
    """What is wrong with the recording, a line each; None if it cannot be anonymised."""
    once, twice, pipe = (os.path.join(folder, name) for name in ("once", "twice", "pipe"))
    code, _, err = run([stackreel, "anonymize", path, "-o", once])
    if code != 0 and "offset 0x" in err and code != 3:
        return None
    if code != 0:
        return [f"anonymize: exit {code}: {err.strip()[:500]}"]
    problems = []
    for command in (["anonymize", once, "-o", twice],
                    ["anonymize", "--verify", path, once],
                    ["anonymize", "--verify", once, twice]):
        code, out, err = run([stackreel, *command])
        if code != 0:
            problems.append(f"{' '.join(command)}: exit {code}: {(out + err).strip()[:500]}")
    with open(pipe, "wb") as out:
        if subprocess.run([stackreel, "anonymize", path, "-o", "-"], stdout=out, check=False).returncode:
            problems.append("anonymize into a pipe fails")
    problems += check_levels(stackreel, path, folder, ("identity", "symbols"))
    if perf is None or problems:
        return problems
    want, why = report_lines(perf, path)
    if not want:
        return problems  # perf cannot read the original, or nothing in it
    for made in (once, twice, pipe):
        # Of a pipe perf does not know in time that it has branches, and counts samples.
        options = ["--no-branch-stack"] if made == pipe else []
        if options:
            want, _ = report_lines(perf, path, *options)
        got, why = report_lines(perf, made, *options)
        name = os.path.basename(made)
        if got is None:
            problems.append(f"{name}: perf report fails: {why}")
        elif got != want:
            more = [line for line in got if line not in want][:3]
            less = [line for line in want if line not in got][:3]
            problems.append(f"{name}: perf reports other functions: {more} instead of {less}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("stackreel")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--perf", default=shutil.which("perf"))
    parser.add_argument("--swap", metavar="COPY_RECORDING")
    parser.add_argument("--at-most", type=int, metavar="BYTES")
    parser.add_argument("--with", nargs="+", default=[], metavar="NAME", dest="named")
    args = parser.parse_args()
    files = args.files or find_corpus()
    missing = [name for name in args.named if not any(path.endswith(name) for path in files)]
    if files and missing:
        print(f"not among the recordings: {', '.join(missing)}")
        return 1
    if args.at_most is not None:
        files = [path for path in files if os.path.getsize(path) <= args.at_most
                 or path.endswith(tuple(args.named))]
    if not files:
        print("no recordings: nothing is compared")
        return 77
    failed = refused = swapped = 0
    for path in files:
        with tempfile.TemporaryDirectory() as folder:
            problems = compare(args.stackreel, args.perf, path, folder)
            if args.swap and problems is not None:
                problems += compare_swapped(args.stackreel, args.swap, path, folder)
                swapped += 1
        if problems is None:
            refused += 1
            print(f"{path}: damaged, not anonymised")
        elif problems:
            failed += 1
            for problem in problems:
                print(f"{path}: {problem}")
    print(f"{len(files)} recordings, {refused} of them damaged, {swapped} swapped: {failed} differ"
          + ("" if args.perf else "; no perf is here"))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
