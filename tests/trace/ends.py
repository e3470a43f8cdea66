#!/usr/bin/env python3
"""How traced programs end: ends.py STACKREEL SOURCE

However a program ends, calls that were open are in its trace. Exit code 77: there is no compiler,
or nothing may be traced here."""
import os
import re
import subprocess
import sys
import tempfile

from checks import SKIPPED, build, check, failures, is_refused, result

STACKREEL, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
# How it ends → its exit code.
WAYS = {"return": 0, "exit": 3, "_exit": 3, "abort": 134, "kill": 137, "fault": 139, "exec": 0,
        "exec_fails": 0}


def run(*arguments):
    return subprocess.run([STACKREEL, *arguments], capture_output=True, text=True, timeout=120)


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "ends")
        build(SOURCE, program, "-O1", "-g", "-pthread")
        trace = os.path.join(folder, "trace")
        for way, code in WAYS.items():
            for threads in (1, 2):
                label = f"{way}, {threads} thread{'s' * (threads > 1)}"
                traced = run("trace", "-P", ".", "-o", trace, "--", program, way,
                             *["x"] * (threads - 1))
                if is_refused(traced.stderr):
                    return SKIPPED
                check(traced.returncode == code, f"{label}: exit code {traced.returncode}")
                shown = run("replay", "-i", trace)
                check(shown.returncode == 0, f"{label}: the trace is whole {shown.stderr}")
                ended = re.search(r"^exit +\d+ (.*)$", run("info", "-i", trace).stdout, re.M)
                expected = f"killed by signal {code - 128}" if code > 128 else f"code {code}"
                check(ended and ended[1] == expected, f"{label}: info says {ended and ended[1]}")
                for function in ["main", "end_by"] + ["wait_long"] * (threads > 1):
                    check(f" {function}()" in shown.stdout, f"{label}: {function} is there")
                if failures:
                    print(traced.stderr + shown.stdout)
        traced = run("trace", "--clock=kernel", "-P", ".", "-o", trace, "--", program, "return")
        shown = run("replay", "-i", trace)
        # Of this one is known that it slept for a millisecond.
        found = re.search(r"([\d.]+) (us|ms|s) .*\} /\* main \*/", shown.stdout)
        took = float(found[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1}[found[2]] if found else 0
        check(0.001 <= took < 60, f"by the kernel's clock main took {took} s")
    return result()


if __name__ == "__main__":
    sys.exit(main())
