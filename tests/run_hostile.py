#!/usr/bin/env python3
"""Builds the programs of tests/hostile/ and patches their functions while they run.

  run_hostile.py TOGGLER SOURCES [--toggles=N] [--seconds=S] [--threads=T] [--only=a,b] [--matrix]
                                 [--keep-from=TIME] [--traps]

TOGGLER (tests/toggle_functions.cc) runs a program, patches and unpatches all its functions over and
over, and fails if the program does, if text is not as in the file afterwards, or if a recorded call
does not add up. The program ends after N toggles, or S seconds if that is sooner. --keep-from:
shorter calls are not kept, for very many toggles. --traps: traps are put where nothing else can
be. --matrix: at -O0, -O2 and -O3 with gcc and clang, with and without -fcf-protection; else gcc -O2
only. Exit code 77: there is no compiler, or nothing could be run here.
"""
import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile

# Functions of the C library are patched too, beside the program's own.
ALSO = {"libc_calls": ["malloc@libc", "free@libc", "clock_gettime@libc", "getpid@libc"],
        "libraries": ["*@library17", "*@library23"],
        "exceptions": ["*@libgcc_s*"],  # the unwinder, most of it without names
        "sleeps": ["nanosleep@libc", "poll@libc", "epoll_wait@libc", "select@libc"]}
ENDED_BEFORE = 76
LINK = {"static": ["-static"], "static_pie": ["-static-pie"], "stripped": ["-s"], "one_thread": []}
# (program, how it is linked, or run); "" is as usual.
EXTRA = [("hot_leaf", "static"), ("hot_leaf", "static_pie"), ("hot_leaf", "stripped"),
         ("exceptions", "static"), ("jumps", "static"), ("libraries", "one_thread")]


def compilers(matrix):
    found = []
    for c, cxx in (("gcc", "g++"), ("clang-19", "clang++-19")):
        if shutil.which(c) and shutil.which(cxx):
            found.append((c, cxx))
    return found if matrix else found[:1]


def build(source, pair, flags, output, extra):
    compiler = pair[1] if source.endswith(".cc") else pair[0]
    command = [compiler, *flags, "-g1", "-pthread", source, "-o", output, *extra]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{result.stderr}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("toggler")
    parser.add_argument("sources")
    parser.add_argument("--toggles", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep-from", default="")
    parser.add_argument("--traps", action="store_true")
    parser.add_argument("--matrix", action="store_true")
    options = parser.parse_args()
    pairs = compilers(options.matrix)
    if not pairs:
        print("no compiler here")
        return 77
    levels = ["-O0", "-O2", "-O3"] if options.matrix else ["-O2"]
    protections = ["none", "full"] if options.matrix else ["none"]
    programs = sorted(name for name in os.listdir(options.sources) if name.endswith((".c", ".cc")))
    jobs = [(p, "") for p in programs] + [
        (next(p for p in programs if p.split(".")[0] == name), link) for name, link in EXTRA]
    only = set(filter(None, options.only.split(",")))
    if unknown := only - {p.split(".")[0] for p in programs}:
        sys.exit(f"no such programs: {', '.join(sorted(unknown))}")
    failed = skipped = passed = 0
    with tempfile.TemporaryDirectory() as folder:
        for (pair, level, protection), (program, link) in itertools.product(
                itertools.product(pairs, levels, protections), jobs):
            name = program.split(".")[0]
            if only and name not in only:
                continue
            if link == "stripped" and options.toggles == 0:
                continue  # no name to count its calls by
            # Of the one nothing is recorded without traps; the other sets its handler of their signal
            # after it was patched from its start.
            if options.toggles == 0 and name == ("own_traps" if options.traps else "short_functions"):
                continue
            source = os.path.join(options.sources, program)
            binary = os.path.join(folder, name)
            flags = [level, f"-fcf-protection={protection}"]
            build(source, pair, flags, binary, LINK.get(link, []))
            environment = dict(os.environ)
            if name == "libraries":
                libraries = []
                for number in (17, 23):
                    libraries.append(os.path.join(folder, f"library{number}.so"))
                    build(source, pair, flags, libraries[-1],
                          ["-fPIC", "-shared", f"-DLIBRARY={number}"])
                environment["HOSTILE_LIBRARY"] = ":".join(libraries)
            threads = [] if name in ("vfork_loop", "prefork", "libraries") else [str(options.threads)]
            if name == "libraries" and link == "one_thread":
                threads = ["1"]
            # A stripped program has no names of its own.
            own = ["malloc@libc", "free@libc", "*sleep@libc"] if link == "stripped" else ["."]
            also = [] if link.startswith("static") else ALSO.get(name, [])
            patterns = [f"--pattern={p}" for p in own + also]
            if name == "execs":
                patterns.append("--follow")
            result = None
            # On a busy machine the program may be over before it is attached to.
            for seconds in (options.seconds, 4 * options.seconds):
                if result is not None and result.returncode != ENDED_BEFORE:
                    break
                result = subprocess.run(
                    [options.toggler, f"--toggles={options.toggles}",
                     f"--keep-from={options.keep_from}", *(["--traps"] * options.traps), *patterns,
                     f"--trace={os.path.join(folder, 'trace')}", "--", binary,
                     str(seconds), *threads],
                    capture_output=True, text=True, env=environment, timeout=600 + 2 * seconds)
            label = " ".join(filter(None, [name, link, pair[0], level, "cf" if protection == "full"
                                           else ""]))
            if result.returncode in (77, ENDED_BEFORE):
                skipped += 1
                print(f"{label}: skipped: {result.stderr.strip()}")
            elif result.returncode == 0:
                passed += 1
                print(f"{label}: {result.stdout.strip().splitlines()[-1]}")
            else:
                failed += 1
                print(f"{label}: FAILED with {result.returncode}\n{result.stdout}{result.stderr}")
            sys.stdout.flush()
    print(f"{passed} passed, {skipped} skipped, {failed} failed")
    if failed:
        return 1
    return 0 if passed else 77


if __name__ == "__main__":
    sys.exit(main())
