#!/usr/bin/env python3
"""Runs clang-tidy-19 over every source of src/, fuzz/, bench/ and tests/ that the build knows.

usage: run_tidy.py BUILD_DIR [PATH_PREFIX...]   e.g. run_tidy.py build/tidy src/perfdata

Unit tests (*_test.cc) are left out unless a prefix names them: their macros cost most of the time.
"""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def tidy(build, source):
    run = subprocess.run(["clang-tidy-19", "-p", build, "--quiet", source], capture_output=True,
                         text=True, check=False)
    return source, run.returncode, run.stdout


def main():
    build, prefixes = sys.argv[1], sys.argv[2:]
    sources = []
    for entry in json.loads((pathlib.Path(build) / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else ""
        if not name.startswith(("src/", "fuzz/", "bench/", "tests/")):
            continue
        if name.startswith(tuple(prefixes)) if prefixes else not name.endswith("_test.cc"):
            sources.append(name)
    os.chdir(ROOT)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, code, output in pool.map(lambda s: tidy(build, s), sorted(set(sources))):
            if code != 0:
                failed += 1
                print(output.strip() or f"{source}: clang-tidy failed")
    print(f"clang-tidy: {len(set(sources))} files, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
