#!/usr/bin/env python3
"""Children of a traced program that execute others: children.py STACKREEL SOURCE

Exit code 77: there is no compiler, or nothing may be traced here."""
import os
import re
import subprocess
import sys
import tempfile

from checks import SKIPPED, build, check, is_refused, result

STACKREEL, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])


def not_traced(said):
    """How many children are told of as not traced."""
    found = re.search(r"(\d+) child process\w* ha\w+ executed", said)
    return int(found[1]) if found else 0


def without_follow(program, trace):
    """They are counted; those that could execute nothing are not."""
    for way in ("fork", "vfork", "spawn"):
        for command, times, counted in (("/bin/true", 3, 3), ("/nowhere/third", 2, 0)):
            traced = subprocess.run([STACKREEL, "trace", "-P", "step", "-o", trace, "--", program, way,
                                     str(times), command], capture_output=True, text=True, timeout=60)
            if is_refused(traced.stderr):
                return False
            check(traced.returncode == 0, f"{way} {command}: exit code {traced.returncode}")
            check(not_traced(traced.stderr) == counted,
                  f"{way} {command}: {not_traced(traced.stderr)} are told of")
    return True


def main():
    with tempfile.TemporaryDirectory() as folder:
        program, trace = os.path.join(folder, "children"), os.path.join(folder, "trace")
        build(SOURCE, program, "-O1", "-g")
        if not without_follow(program, trace):
            return SKIPPED
    return result()


if __name__ == "__main__":
    sys.exit(main())
