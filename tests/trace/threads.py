#!/usr/bin/env python3
"""Programs of more threads than the buffer has chunks at first: threads.py STACKREEL SOURCE

Exit code 77: there is no compiler, or nothing may be traced here."""
import os
import re
import subprocess
import sys
import tempfile

from checks import SKIPPED, build, check, is_refused, result

STACKREEL, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
CALLS = 2000
MOST = 1024  # threads that are recorded


def main():
    with tempfile.TemporaryDirectory() as folder:
        program, trace = os.path.join(folder, "threads"), os.path.join(folder, "trace")
        build(SOURCE, program, "-O1", "-g", "-pthread")
        for count, buffer in ((20, "1"), (700, "32"), (1000, "32"), (1300, "32")):
            traced = subprocess.run([STACKREEL, "trace", "-P", "step", "--buffer", buffer, "-o", trace,
                                     "--", program, str(count), str(CALLS)],
                                    capture_output=True, text=True, timeout=100)
            if is_refused(traced.stderr):
                return SKIPPED
            if traced.returncode == 77:
                print(f"{count} threads cannot be had here")
                continue
            check(traced.stdout == "0 wrong\n", f"{count} threads: {traced.stdout}")
            numbers = re.search(r"(\d+) calls of 1 function in (\d+) threads?, (\d+) lost",
                                traced.stderr)
            check(numbers, traced.stderr)
            calls, threads, lost = (int(number) for number in numbers.groups()) if numbers else [0] * 3
            # Of those that are too many some have the place of one that has ended.
            check(threads == count if count <= MOST else threads >= MOST, f"{count} threads: {threads} recorded")
            check(calls + lost == count * CALLS, f"{count} threads: {calls} calls, {lost} lost")
            check(count > MOST or lost == 0, f"{count} threads: {lost} lost")
    return result()


if __name__ == "__main__":
    sys.exit(main())
