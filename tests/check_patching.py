#!/usr/bin/env python3
"""Compiles tests/programs/prologues.c in many ways. Relocates the beginning of each function and runs
it against the original (run_relocated), and checks which kind of site is found where the compiler was
told to leave one (patchable_functions).

usage: check_patching.py RUN_RELOCATED PATCHABLE_FUNCTIONS PROLOGUES.C
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

COMPILERS = ["gcc", "clang-19"]
LEVELS = ["-O0", "-O1", "-O2", "-O3", "-Os"]
PROTECTION = ["-fcf-protection=none", "-fcf-protection=full"]
# Functions of the source that any of these kinds must be found for.
ENOUGH = 50
# (kind, compiler, flags for compiling, flags for linking)
PREPARED = [
    ("nops", "gcc", ["-fPIC", "-fpatchable-function-entry=5"], ["-shared"]),
    ("nop", "clang-19", ["-fPIC", "-fpatchable-function-entry=5"], ["-shared"]),
    ("nops", "gcc", ["-fPIC", "-fpatchable-function-entry=5", "-fcf-protection=full"], ["-shared"]),
    ("nops", "gcc", ["-fPIC", "-fpatchable-function-entry=16,6"], ["-shared"]),
    ("nop", "gcc", ["-fno-pic", "-pg", "-mfentry", "-mnop-mcount", "-mrecord-mcount"],
     ["-no-pie", "-nostdlib", "-Wl,-e,0", "-Wl,--unresolved-symbols=ignore-all"]),
    ("nop", "gcc", ["-fno-pic", "-pg", "-mfentry", "-mnop-mcount", "-fcf-protection=full"],
     ["-no-pie", "-nostdlib", "-Wl,-e,0", "-Wl,--unresolved-symbols=ignore-all"]),
    ("call", "gcc", ["-fno-pic", "-pg", "-mfentry", "-DDEFINE_PROFILING"], ["-no-pie", "-nostdlib",
     "-Wl,-e,0", "-Wl,--unresolved-symbols=ignore-all"]),
    ("call", "clang-19", ["-fno-pic", "-pg", "-DDEFINE_PROFILING"], ["-no-pie", "-nostdlib",
     "-Wl,-e,0", "-Wl,--unresolved-symbols=ignore-all"]),
    ("sled", "clang-19", ["-fPIC", "-fxray-instrument", "-fxray-instruction-threshold=1"],
     ["-shared"]),
]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def compile_to(output, compiler, source, compile_flags, link_flags):
    """Linked by gcc: clang would ask for its own runtime."""
    objects = output.with_suffix(".o")
    for command in (
        [compiler, "-c", *compile_flags, "-w", "-o", str(objects), str(source)],
        ["gcc", *link_flags, "-o", str(output), str(objects)],
    ):
        code, text = run(command)
        if code != 0:
            sys.exit(f"{' '.join(command)}:\n{text}")
    return output


def check_relocated(program, files):
    code, text = run([program, "--limit=100000", *map(str, files)])
    print(text, end="")
    return code == 0


def check_kind(program, file, kind):
    code, text = run([program, str(file)])
    found = re.search(rf"kinds:.*?\b{kind} (\d+);", text)
    count = int(found.group(1)) if found else 0
    good = code == 0 and count >= ENOUGH
    if not good:
        print(f"{file.name}: {count} sites of kind '{kind}', at least {ENOUGH} expected\n{text}")
    return good


def main():
    run_relocated, patchable, source = sys.argv[1:]
    compilers = [name for name in COMPILERS if shutil.which(name)]
    if "gcc" not in compilers:
        print("no gcc")
        return 77
    good = True
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        libraries = [
            compile_to(folder / f"{compiler}{level}{flag}.so", compiler, source,
                       ["-fPIC", level, flag], ["-shared"])
            for compiler in compilers for level in LEVELS for flag in PROTECTION
        ]
        good &= check_relocated(run_relocated, libraries)
        for i, (kind, compiler, compile_flags, link_flags) in enumerate(PREPARED):
            if compiler not in compilers:
                continue
            for level in ("-O0", "-O2"):
                file = compile_to(folder / f"{kind}.{i}{level}.so", compiler, source,
                                  [level, *compile_flags], link_flags)
                good &= check_kind(patchable, file, kind)
    print("good" if good else "BAD")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
