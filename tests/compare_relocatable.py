#!/usr/bin/env python3
"""Holds what we read of relocatable files (as kernel modules are) against the same files linked.

usage: compare_relocatable.py SOURCE_FRAMES SOURCE...

Each SOURCE is compiled to a .o with a section for each function, and that is linked so that its code
stays in order, as a kernel lays out a module. Functions, files and lines of the .o, from 0 on, must
be those of the linked file, which compare_source_index.py holds against llvm-symbolizer.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

COMPILERS = ["g++", "clang++-19"]
VERSIONS = [4, 5]
BASE = 0x10000
STEP = 3
SCRIPT = """SECTIONS {
  . = 0x10000;
  .text : { *(.text .text.*) }
  .data : { *(.data .data.* .rodata .rodata.* .bss .bss.* .eh_frame .gcc_except_table*) }
}
"""


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def text_size(path):
    found = re.search(r" \.text\s+PROGBITS\s+\w+ \w+ (\w+)", run(["readelf", "-SW", path]))
    return int(found[1], 16)


def answers(source_frames, path, addresses):
    text = run([source_frames, path], input="".join(f"{a:x}\n" for a in addresses))
    return [block.splitlines()[1:] for block in text.strip().split("\n\n")]


def compare(source_frames, folder, compiler, version, source):
    script, relocatable, linked = folder / "order.ld", folder / "file.o", folder / "file"
    script.write_text(SCRIPT)
    run([compiler, "-O2", "-c", "-fPIC", "-ffunction-sections", f"-gdwarf-{version}", source,
         "-o", relocatable])
    run(["ld", "-o", linked, "-e", hex(BASE), "--unresolved-symbols=ignore-all",
         "--no-gc-sections", "-T", script, relocatable])
    offsets = range(0, text_size(linked), STEP)
    of_linked = answers(source_frames, linked, [BASE + o for o in offsets])
    of_relocatable = answers(source_frames, relocatable, offsets)
    differ = [(hex(o), a, b) for o, a, b in zip(offsets, of_relocatable, of_linked) if a != b]
    known = sum(frames != ["??", "??:0:0"] for frames in of_relocatable)
    print(f"{compiler} DWARF {version}: {len(offsets)} addresses, {known} known, "
          f"{len(differ)} differ")
    for difference in differ[:5]:
        print(" ", *difference)
    return not differ and known > len(offsets) * 0.9


def main():
    source_frames, sources = sys.argv[1], sys.argv[2:]
    done, good = 0, True
    with tempfile.TemporaryDirectory() as folder:
        for compiler in filter(shutil.which, COMPILERS):
            for version in VERSIONS:
                for source in sources:
                    done += 1
                    good &= compare(source_frames, pathlib.Path(folder), compiler, version, source)
    if done == 0:
        print("skipped: no compiler")
        return 77
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
