#!/usr/bin/env python3
"""Holds the values of traced calls against what was passed.

usage: compare_values.py STACKREEL PROGRAM.cc

The program calls functions with values it knows and prints how a trace must show each call. It is compiled
by each compiler that is there, without and with optimization, with std::strings of both ABIs, and with debug
information of several kinds; traced with -a; and what `stackreel replay` shows must be what it printed.
Exit code 77 (skipped) where there is no compiler, or nothing can be traced."""

import pathlib
import re
import shutil
import sys
import tempfile

from compare_uftrace import SKIPPED, may_trace, run

BUILDS = [
    ("g++", ["-O0"]),
    ("g++", ["-O2", "-mavx"]),
    ("g++", ["-O2", "-gdwarf-4", "-D_GLIBCXX_USE_CXX11_ABI=0"]),
    ("g++", ["-O3", "-fno-plt", "-gsplit-dwarf"]),
    ("clang++", ["-O0", "-fstandalone-debug"]),
    ("clang++", ["-O2", "-fstandalone-debug"]),
    # It makes copies of functions for the arguments they are called with.
    ("clang++-19", ["-O2", "-fstandalone-debug", "-mllvm", "-funcspec-max-iters=0"]),
]


def shown(text, names):
    """The calls of the replay, without what is in them, in their order of entry: [line, …]."""
    calls, open_calls = [], []
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("}"):
            index = open_calls.pop()
            result = line.removeprefix("} = ").removesuffix(";") if " = " in line else None
            if result is not None:
                calls[index] += " = " + result
            continue
        if line.endswith(") {"):
            open_calls.append(len(calls))
            line = line.removesuffix(" {")
        else:
            line = line.removesuffix(";")
        calls.append(line)
    return [call for call in calls if call.split("(")[0] in names]


def check(stackreel, program, label, folder):
    alone = run([program])
    if alone.returncode != 0:
        print(f"{label}: not for this CPU: it ends with {alone.returncode}")
        return None
    expected = alone.stdout.decode().splitlines()
    names = {line.split("(")[0] for line in expected}
    trace = folder / "trace"
    done = run([stackreel, "trace", "-a", "-P", ".", "-o", trace, "--", program])
    if done.returncode != 0:
        print(f"{label}: trace ends with {done.returncode}: {done.stderr.decode()}")
        return False
    replay = run([stackreel, "replay", "-f", "none", "--no-comment", "-i", trace]).stdout.decode()
    got = [re.sub(r"0x7ff[0-9a-f]{9}", "STACK", line) for line in shown(replay, names)]
    if got == expected:
        print(f"{label}: {len(got)} calls as they were made")
        return True
    for i in range(max(len(expected), len(got))):
        pair = expected[i:i + 1], got[i:i + 1]
        if pair[0] != pair[1]:
            print(f"{label}: call {i}:\n  expected {pair[0]}\n  shown    {pair[1]}")
    print(done.stderr.decode())
    return False


FOLLOWED = """#include <cstdio>
#include <unistd.h>
#ifdef FIRST
enum Fruit { kApple, kPear };
__attribute__((noinline)) void Eat(Fruit fruit) { std::printf("%d", fruit); }
int main(int, char** argv) {
  Eat(kPear);
  execl(argv[1], argv[1], nullptr);
}
#else
enum Tool { kHammer, kSaw };
__attribute__((noinline)) void Use(Tool tool) { std::printf("%d", tool); }
int main() { Use(kSaw); }
#endif
"""


def check_followed(stackreel, compiler, folder):
    """Names of enumerations are their own program's, whatever is executed afterwards."""
    source, first, second = folder / "followed.cc", folder / "first", folder / "second"
    source.write_text(FOLLOWED)
    run([compiler, "-g", "-O1", "-DFIRST", source, "-o", first])
    run([compiler, "-g", "-O1", source, "-o", second])
    trace = folder / "followed"
    done = run([stackreel, "trace", "--follow", "-a", "-P", "^(Eat|Use|main)", "-o", trace, "--",
                first, second])
    replay = run([stackreel, "replay", "-f", "none", "--no-comment", "-i", trace]).stdout.decode()
    got = shown(replay, {"Eat", "Use"})
    if got == ["Eat(kPear)", "Use(kSaw)"]:
        print("--follow: each program's enumerations")
        return True
    print(f"--follow: {got}: {done.stderr.decode()}")
    return False


def main():
    stackreel = pathlib.Path(sys.argv[1]).resolve()
    source = pathlib.Path(sys.argv[2])
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        if not may_trace(stackreel, pathlib.Path(temporary)):
            return SKIPPED
        for compiler, arguments in BUILDS:
            if not shutil.which(compiler):
                continue
            folder = pathlib.Path(tempfile.mkdtemp(dir=temporary))
            program = folder / "values"
            label = " ".join([compiler, *arguments])
            done = run([compiler, "-std=c++17", "-g", "-w", *arguments, source.resolve(), "-o", program],
                       cwd=folder)
            if done.returncode != 0:
                print(f"{label}: does not compile: {done.stderr.decode()[:400]}")
                continue
            results.append(check(stackreel, program, label, folder))
        if compiler := shutil.which("g++"):
            results.append(check_followed(stackreel, compiler, pathlib.Path(temporary)))
    if not results or all(result is None for result in results):
        print("skipped: no compiler")
        return SKIPPED
    return 0 if all(result is not False for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
