#!/usr/bin/env python3
"""Programs whose own runtimes walk the stack: languages.py STACKREEL SOURCES

Each language is tried whose compiler is here; with all its functions patched, a program puts out
and returns what it does else, and says why functions are left alone. Exit code 77: there is none of
the compilers, or nothing may be traced here."""
import os
import shutil
import subprocess
import sys
import tempfile

from checks import SKIPPED, is_refused

STACKREEL, SOURCES = (os.path.abspath(path) for path in sys.argv[1:3])
PATIENCE = 240


def run(command, folder):
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, cwd=folder)


def build(command, folder):
    done = run(command, folder)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def go(folder):
    shutil.copy(f"{SOURCES}/stacks.go", folder)
    with open(f"{folder}/go.mod", "w", encoding="ascii") as module:
        module.write("module stacks\n")
    os.environ.setdefault("GOCACHE", f"{folder}/cache")
    build(["go", "build", "-o", "stacks"], folder)
    return ["./stacks"]


def ocaml(folder):
    shutil.copy(f"{SOURCES}/stacks.ml", folder)
    build(["ocamlopt", "-g", "stacks.ml", "-o", "stacks"], folder)
    return ["./stacks"]


def haskell(folder):
    shutil.copy(f"{SOURCES}/Stacks.hs", folder)
    build(["ghc", "-v0", "-O1", "Stacks.hs", "-o", "stacks"], folder)
    return ["./stacks"]


def java(folder):
    shutil.copy(f"{SOURCES}/Stacks.java", folder)
    build(["javac", "Stacks.java"], folder)
    return ["java", "-cp", ".", "Stacks"]


def javascript(folder):
    shutil.copy(f"{SOURCES}/stacks.js", folder)
    return ["node", "--expose-gc", "stacks.js"]


# What compiles it, how, functions to trace, what is said of its functions, and a part of the name
# of one that is recorded.
LANGUAGES = [("go", go, ".", "Go code", ""), ("ocamlopt", ocaml, ".", "OCaml code", ""),
             ("ghc", haskell, ".", "Haskell code", ""), ("javac", java, "*@libjvm.so", "", ""),
             ("node", javascript, ".", "V8 runs it as code of its own", "Runtime_CompileLazy")]


def try_language(compiler, make, pattern, said, recorded):
    with tempfile.TemporaryDirectory() as folder:
        program = make(folder)
        alone = run(program, folder)
        traced = run([STACKREEL, "trace", "-P", pattern, "-o", "trace", "--", *program], folder)
        report = run([STACKREEL, "report", "-i", "trace"], folder) if recorded else traced
    if is_refused(traced.stderr):
        return None
    same = (alone.stdout, alone.returncode) == (traced.stdout, traced.returncode)
    told = said in traced.stderr and recorded in report.stdout
    if not same or not told:
        print(f"{compiler}: {traced.returncode}, not {alone.returncode}\n{traced.stdout}"
              f"{traced.stderr[-2000:]}")
    print(("ok      " if same and told else "FAILED  ") + compiler, flush=True)
    return same and told


def main():
    results = [try_language(*language) for language in LANGUAGES if shutil.which(language[0])]
    if all(result is None for result in results):
        print("no compiler of these languages here")
        return SKIPPED
    return 1 if False in results else 0


sys.exit(main())
