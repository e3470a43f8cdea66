#!/usr/bin/env python3
"""Records programs whose memory is of a rare kind, and holds them against what they are anonymised.

usage: anonymize_programs.py STACKREEL [--swap COPY_RECORDING]

The programs are those of programs/mappings.c: ten thousand mappings, text copied to huge pages,
libraries that come and go, code that a JIT compiler made. Of each recording all that
compare_anonymized.py asks must hold; and the call graphs that STACKREEL shows must be those of the
original, unwound. Names of JIT code lie beside a recording, by address: an anonymised one has none
of them, and does not hold them either. It exits 77, which skips a test, where there is no perf or
no compiler, events may not be opened, or the CPU is another.
"""

import argparse
import collections
import glob
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

from compare_anonymized import check_levels, compare, compare_swapped, run

HERE = os.path.dirname(os.path.abspath(__file__))
# How a stack that was dumped ends; a call chain does not say.
END = re.compile(r"\[(truncated stack|stack ends: [^]]*)\];")
LEVELS = ("addresses", "identity", "symbols")


def compile_all(folder):
    """The program, and the libraries that it loads."""
    program = os.path.join(folder, "mappings")
    source = os.path.join(HERE, "programs", "mappings.c")
    subprocess.run(["cc", "-O1", "-g", "-fno-omit-frame-pointer", source, "-o", program, "-ldl"],
                   check=True)
    libraries = []
    for number in (1, 2, 3):
        source, library = (os.path.join(folder, name) for name in
                           (f"library{number}.c", f"library{number}.so"))
        with open(source, "w", encoding="utf-8") as out:
            out.write(f"static volatile int v;\n"
                      f"__attribute__((noinline)) static void Inner{number}(void) {{\n"
                      f"  for (int i = 0; i < {number}000; ++i) v += i;\n}}\n"
                      f"void Run(void) {{\n  Inner{number}();\n  v = 0;\n}}\n")
        subprocess.run(["cc", "-O1", "-g", "-shared", "-fPIC", source, "-o", library], check=True)
        libraries.append(library)
    return program, libraries


def record(folder, how, command):
    """The recording; None if there can be none."""
    data = os.path.join(folder, "perf.data")
    done = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", "499", *how, "-o", data,
                           "--", *command], capture_output=True, check=False)
    return data if done.returncode == 0 else None


def stacks(stackreel, path):
    """Weights by call stack."""
    code, out, err = run([stackreel, "flamegraph", "--format=folded", "-i", path, "-o", "-"])
    if code != 0:
        return None, err.strip()
    weights = collections.Counter()
    for line in out.splitlines():
        stack, weight = line.rsplit(" ", 1)
        weights[END.sub("", stack)] += int(weight)
    return weights, ""


def compare_stacks(stackreel, data, folder):
    made = os.path.join(folder, "made")
    code, _, err = run([stackreel, "anonymize", data, "-o", made])
    if code != 0:
        return [f"anonymize: exit {code}: {err.strip()[:300]}"]
    want, why = stacks(stackreel, data)
    got, why_not = stacks(stackreel, made)
    if want is None or got is None:
        return [why or why_not]
    if not want:
        return ["no stack was recorded"]
    return [f"other stacks: {sorted((got - want).items())[:2]} instead of "
            f"{sorted((want - got).items())[:2]}"] if got != want else []


def check_jit(stackreel, data, folder):
    """While map and dump are there; and takes them away, so that the rest compares without."""
    problems = check_levels(stackreel, data, folder, LEVELS)
    shown, _ = stacks(stackreel, data)
    if not any("XQjitted" in stack for stack in shown):
        problems.append("the original does not show the names of its JIT code")
    made = os.path.join(folder, "made")
    for level in LEVELS:
        run([stackreel, "anonymize", data, "-o", made, "--" + level])
        with open(made, "rb") as file:
            content = file.read()
        problems += [f"--{level}: it holds a name of JIT code"] if b"XQjitted" in content else []
    for dump in glob.glob(os.path.join(folder, "jit-*.dump")):
        os.remove(f"/tmp/perf-{dump.rsplit('-', 1)[1].removesuffix('.dump')}.map")
        os.remove(dump)
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("stackreel")
    parser.add_argument("--swap", metavar="COPY_RECORDING")
    args = parser.parse_args()
    perf = shutil.which("perf")
    if perf is None or shutil.which("cc") is None or platform.machine() != "x86_64":
        print("no perf, no compiler or another CPU: nothing is recorded")
        return 77
    dwarf, frame_pointers = ["--call-graph", "dwarf,8192"], ["-g"]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        program, libraries = compile_all(folder)
        many = [program, "many", "10000", os.path.join(folder, "code")]
        for name, how, command in (("mappings, data addresses", ["-d", *dwarf], many),
                                   ("mappings, frame pointers", frame_pointers, many),
                                   ("huge pages", dwarf, [program, "huge"]),
                                   ("libraries", dwarf, [program, "libraries", *libraries]),
                                   ("JIT code", dwarf, [program, "jit", folder]),
                                   ("JIT code, frame pointers", frame_pointers,
                                    [program, "jit", folder])):
            data = record(folder, how, command)
            if data is None:
                print("no recording can be made: nothing is compared")
                return 77
            problems = check_jit(args.stackreel, data, folder) if command[1] == "jit" else []
            problems += compare(args.stackreel, perf, data, folder) or []
            problems += compare_stacks(args.stackreel, data, folder)
            if args.swap:
                problems += compare_swapped(args.stackreel, args.swap, data, folder)
            failed += len(problems)
            print(f"{name}: {os.path.getsize(data)} bytes: {problems or 'as the original'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
