#!/usr/bin/env python3
"""What a program sets up while it is traced, and would be ended by: settings.py STACKREEL SOURCE

Exit code 77: there is no compiler, or nothing may be traced here."""
import os
import subprocess
import sys
import tempfile

from checks import SKIPPED, build, check, failures, is_refused, result

STACKREEL, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
# Of what is said to be lost by each, a part.
FILTERS = ("prctl", "syscall")
SIGNALS = ("mask", "old_mask", "own_handler", "handler_mask")
CALLS = 101


def main():
    with tempfile.TemporaryDirectory() as folder:
        program, trace = os.path.join(folder, "settings"), os.path.join(folder, "trace")
        build(SOURCE, program, "-O1", "-g", "-pthread")
        for way in ("nothing", *FILTERS, *SIGNALS):
            alone = subprocess.run([program, way], capture_output=True, text=True, timeout=60)
            if alone.returncode == 77:
                print(f"{way}: cannot be had here")
                continue
            traced = subprocess.run([STACKREEL, "trace", "-a", "--traps", "-P", "read_text", "-P",
                                     "short_*", "-o", trace, "--", program, way],
                                    capture_output=True, text=True, timeout=60)
            if is_refused(traced.stderr):
                return SKIPPED
            check(traced.returncode == alone.returncode and traced.stdout == alone.stdout,
                  f"{way}: exit code {traced.returncode}")
            shown = subprocess.run([STACKREEL, "replay", "-f", "none", "--no-comment", "-i", trace],
                                   capture_output=True, text=True, timeout=60).stdout
            texts = shown.count('read_text("a text of the program\'s own")')
            check(texts == (1 if way in FILTERS else CALLS), f"{way}: {texts} texts")
            check(shown.count("read_text(") == CALLS, f"{way}: all calls with texts are there")
            check(("texts were not read" in traced.stderr) == (way in FILTERS),
                  f"{way}: texts are told of")
            trapped = shown.count("short_one(")
            check(trapped == (1 if way in SIGNALS else CALLS), f"{way}: {trapped} calls by traps")
            if failures:
                print(traced.stderr)
    return result()


if __name__ == "__main__":
    sys.exit(main())
