#!/usr/bin/env python3
"""Time-outs that begin anew when a thread is stopped come to their end: waits.py STACKREEL SOURCE

Exit code 77: there is no compiler, or nothing may be traced here."""
import os
import select
import signal
import subprocess
import sys
import tempfile

from checks import SKIPPED, build, check, is_refused, result

STACKREEL, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
PATIENCE = 30  # of what takes seconds


def beside_traps(program, trace):
    """True if it could be tried."""
    tracer = subprocess.Popen([STACKREEL, "trace", "--traps", "-P", "short_*", "-o", trace, "--",
                               program, "traps"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, start_new_session=True)
    try:
        stdout, stderr = tracer.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(tracer.pid, signal.SIGKILL)
        stdout, stderr = tracer.communicate()
    if is_refused(stderr):
        return False
    check(stdout == "2 waits\n", f"beside traps: {stdout.strip()}")
    check(" 4 calls of 2 functions" in stderr, f"beside traps: {stderr.strip()}")
    return True


def line_of(target):
    ready, _, _ = select.select([target.stdout], [], [], PATIENCE)
    return target.stdout.readline().strip() if ready else "nothing"


def while_deferred(program, trace):
    with subprocess.Popen([program, "deferred"], stdout=subprocess.PIPE, text=True,
                          start_new_session=True) as target:
        check(line_of(target) == "there", "a thread is inside")
        tracer = subprocess.Popen([STACKREEL, "trace", "-p", str(target.pid), "-P", "start_child",
                                   "-o", trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True)
        line = line_of(target)
        check(line == "10 waits", f"while a site is deferred: {line}")
        tracer.send_signal(signal.SIGINT)
        _, stderr = tracer.communicate(timeout=PATIENCE)
        check("a thread was inside" in stderr, f"while a site is deferred: {stderr.strip()}")
        os.killpg(target.pid, signal.SIGKILL)


def main():
    with tempfile.TemporaryDirectory() as folder:
        program, trace = os.path.join(folder, "waits"), os.path.join(folder, "trace")
        build(SOURCE, program, "-O1", "-g", "-pthread")
        if not beside_traps(program, trace):
            return SKIPPED
        while_deferred(program, trace)
    return result()


if __name__ == "__main__":
    sys.exit(main())
