#!/usr/bin/env python3
"""Holds the functions, files, lines and columns that we read from DWARF against llvm-symbolizer's.

usage: compare_source_index.py SOURCE_FRAMES SOURCE... [--binary FILE]... [--addresses N]

SOURCE_FRAMES is the program source_frames. Each SOURCE (.cc, .c, .rs) is built by every compiler
there is, in the versions and shapes of DWARF that there are tools for; --binary adds files built
already. Of each, N random addresses of .text are compared, frame by frame. Fails unless 99.9 % of
them agree.

Where there is no debug information, llvm-symbolizer answers from the symbol table, and it names the
outermost function by it ("f.cold", "_ZN1SC1Ev" for "_ZN1SC2Ev"): such names are not compared. It
does not read supplementary files: a file that dwz took to pieces must give what it gave before.
"""

import argparse
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

GXX = ["g++-12", "g++"]
CLANGXX = ["clang++-19", "clang++"]
SYMBOLIZERS = ["llvm-symbolizer-19", "llvm-symbolizer"]
# name, compilers, options
BUILDS = [
    *[(f"gcc dwarf {v}", GXX, [f"-gdwarf-{v}"]) for v in (2, 3, 4, 5)],
    *[(f"clang dwarf {v}", CLANGXX, [f"-gdwarf-{v}"]) for v in (4, 5)],
    ("gcc 64 bit", GXX, ["-gdwarf-5", "-gdwarf64"]),
    ("gcc type units", GXX, ["-gdwarf-5", "-fdebug-types-section"]),
    ("gcc -O0", GXX, ["-g", "-O0"]),
    ("gcc lto", GXX, ["-g", "-flto"]),
    ("gcc sections", GXX, ["-g", "-ffunction-sections", "-Wl,--gc-sections"]),
    ("clang lines only", CLANGXX, ["-gline-tables-only"]),
    *[(f"gcc split {v}", GXX, [f"-gdwarf-{v}", "-gsplit-dwarf"]) for v in (4, 5)],
    *[(f"clang split {v}", CLANGXX, [f"-gdwarf-{v}", "-gsplit-dwarf"]) for v in (4, 5)],
]


def first(names):
    return next((path for path in map(shutil.which, names) if path), None)


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def build(source, folder):
    """Yields (name, file, file that the reference is asked of, hide .dwo files)."""
    suffix = source.suffix
    if suffix == ".rs":
        rustc = first(["rustc"])
        out = folder / "rust"
        if rustc and run([rustc, "-O", "-g", source, "-o", out]).returncode == 0:
            yield "rust", out, out, False
        return
    made = {}
    for name, compilers, options in BUILDS:
        compiler = first([c.replace("++", "cc" if c[0] == "g" else "") for c in compilers]
                         if suffix == ".c" else compilers)
        out = folder / name.replace(" ", "_")
        if compiler is None:
            continue
        command = [compiler, "-O2", *options, str(source), "-o", str(out)]
        if suffix != ".c":
            command.insert(1, "-std=c++17")
        if run(command, cwd=folder).returncode == 0:
            made[name] = out
            yield name, out, out, False
    for method in ("zlib", "zlib-gnu", "zstd"):
        whole = made.get("gcc dwarf 4")
        out = folder / method
        if whole and run(["objcopy", f"--compress-debug-sections={method}", whole,
                          out]).returncode == 0:
            yield f"gcc {method}", out, whole, False
    for version in (4, 5):
        for compiler in ("gcc", "clang"):
            split = made.get(f"{compiler} split {version}")
            dwp = first(["llvm-dwp-19", "llvm-dwp"])
            if split is None or dwp is None:
                continue
            out = folder / f"{compiler}_package_{version}"
            shutil.copy(split, out)
            if run([dwp, "-e", split, "-o", f"{out}.dwp"], cwd=folder).returncode == 0:
                yield f"{compiler} package {version}", out, out, True
        whole = made.get(f"gcc dwarf {version}")
        one, two = folder / f"dwz_{version}", folder / f"dwz_{version}_other"
        if whole and shutil.which("dwz"):
            for copy in (one, two):
                shutil.copy(whole, copy)
            if run(["dwz", "-m", f"shared_{version}.debug", one.name, two.name],
                   cwd=folder).returncode == 0:
                yield f"gcc dwz {version}", one, whole, False


def text_addresses(path, count):
    ranges = []
    for line in run(["readelf", "-SW", path]).stdout.splitlines():
        match = re.match(r"\s*\[\s*\d+\]\s+\.text\S*\s+\S+\s+(\w+)\s+\w+\s+(\w+)", line)
        if match:
            ranges.append(range(int(match[1], 16), int(match[1], 16) + int(match[2], 16)))
    total = sum(len(r) for r in ranges)
    out = set()
    for at in random.sample(range(total), min(count, total)):
        for r in ranges:
            if at < len(r):
                out.add(r[at])
                break
            at -= len(r)
    return sorted(out)


def parse(output):
    """{address: [(function, file, line, column)]}"""
    frames, current, function = {}, None, None
    for line in output.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            current = frames.setdefault(int(line, 16), [])
            function = None
        elif line and function is None:
            function = line
        elif line:
            match = re.fullmatch(r"(.*):(\d+):(\d+)", line)
            current.append((function, match[1], int(match[2]), int(match[3])))
            function = None
    return frames


def same(ours, theirs):
    if len(ours) == 1 and ours[0][1] == "??":
        # Nothing in DWARF; the reference has a symbol, and maybe the file that symbol came from.
        return len(theirs) == 1 and theirs[0][2] == 0
    return (len(ours) == len(theirs) and ours[:-1] == theirs[:-1] and
            ours[-1][1:] == theirs[-1][1:])


def compare(source_frames, symbolizer, name, path, reference, count):
    addresses = text_addresses(path, count)
    asked = "".join(f"{a:#x}\n" for a in addresses)
    ours = run([source_frames, path], input=asked)
    theirs = run([symbolizer, "--inlines", "--no-demangle", "-a", "-e", reference], input=asked)
    if ours.returncode != 0 or theirs.returncode != 0:
        print(f"{name}: {ours.stderr}{theirs.stderr}")
        return False
    mine, reference_frames = parse(ours.stdout), parse(theirs.stdout)
    different = [a for a in addresses if not same(mine.get(a, []), reference_frames.get(a, []))]
    frames = sum(len(f) for f in reference_frames.values())
    print(f"{name:18} {len(addresses):6} addresses {frames:6} frames {len(different):4} differ"
          f"  {ours.stderr.strip()}")
    for address in different[:3]:
        print(f"  {address:#x}\n    ours   {mine.get(address)}\n"
              f"    theirs {reference_frames.get(address)}")
    inlined = any(len(f) > 1 for f in mine.values()) or "-O0" in name
    if not inlined:
        print("  no inlined function seen: nothing was tested")
    return inlined and not ours.stderr and len(different) <= len(addresses) // 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source_frames")
    parser.add_argument("sources", nargs="*", type=pathlib.Path)
    parser.add_argument("--binary", action="append", default=[])
    parser.add_argument("--addresses", type=int, default=3000)
    args = parser.parse_args()
    symbolizer = first(SYMBOLIZERS)
    if symbolizer is None or shutil.which("readelf") is None:
        print("skipped: no llvm-symbolizer or no readelf")
        return 77
    random.seed(1)
    good, cases = True, 0
    for path in args.binary:
        good &= compare(args.source_frames, symbolizer, path, path, path, args.addresses)
        cases += 1
    for source in args.sources:
        with tempfile.TemporaryDirectory() as folder:
            for name, path, reference, hide in build(source.resolve(), pathlib.Path(folder)):
                dwo_files = list(pathlib.Path(folder).glob("*.dwo")) if hide else []
                for dwo in dwo_files:
                    dwo.rename(dwo.with_suffix(".hidden"))
                good &= compare(args.source_frames, symbolizer, name, path, reference,
                                args.addresses)
                for dwo in dwo_files:
                    dwo.with_suffix(".hidden").rename(dwo)
                cases += 1
    print(f"{cases} files: {'all agree' if good else 'NOT equal'}")
    return 0 if good and cases else 1


if __name__ == "__main__":
    sys.exit(main())
