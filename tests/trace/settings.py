#!/usr/bin/env python3
"""What a program sets up while it is traced, and would be ended by: settings.py STACKREEL SOURCE

Exit code 77: there is no compiler, or nothing may be traced here."""
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time

from checks import SKIPPED, build, check, failures, is_refused, result

STACKREEL, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
# Of what is said to be lost by each, a part.
FILTERS = ("prctl", "syscall")
# What leaves the agent no system call, or few; by calls that are seen coming, or not.
LIMITS = ("strict", "strict_seccomp", "every", "every_thread", "raw_every", "raw_strict")
SIGNALS = ("mask", "old_mask", "own_handler", "handler_mask")
CALLS = 101
STEPS = 300000
THREADS = 3
ROUNDS = "150"  # of steps: a second, traced


def steps_of(trace):
    """Calls of step(), by the report."""
    shown = subprocess.run([STACKREEL, "report", "-i", trace], capture_output=True, text=True,
                           timeout=60).stdout
    # TOTAL and SELF, each with its unit, CALLS ... FUNCTION
    row = re.search(r"^(?: *[0-9.]+ +\w+){2} +(\d+) .* step$", shown, re.MULTILINE)
    return int(row[1]) if row else 0


def run(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, timeout=60)


def limited_of(tracer):
    """The process that a tracer has started, once it has limited itself."""
    for _ in range(1000):
        children = run("pgrep", "-P", str(tracer.pid)).stdout.split()
        for child in children:
            with contextlib.suppress(OSError), open(f"/proc/{child}/status", encoding="ascii") as file:
                if re.search(r"^Seccomp:\s*[12]", file.read(), re.MULTILINE):
                    return child
        time.sleep(0.01)
    return None


def leave(program, trace, way):
    """Programs that are left, changed, and cleaned up after when they have limited themselves."""
    alone = run(program, way, ROUNDS).stdout
    traced = run(STACKREEL, "trace", "--duration", "0.3", "-P", "step", "-o", trace, "--", program,
                 way, ROUNDS)
    check(traced.stdout == alone and "is as it was" in traced.stderr, f"{way}: it is left")
    for ends in ("patch", "kill"):
        tracer = subprocess.Popen([STACKREEL, "trace", "-P", "step", "-o", trace, "--", program, way,
                                   ROUNDS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child = limited_of(tracer)
        check(child, f"{way}: it runs")
        if ends == "patch":
            # Memory may be had still, or not.
            patched = run(STACKREEL, "patch", "-p", child, "*")
            check(patched.returncode == 0 or "seccomp" in patched.stderr,
                  f"{way}: patching more: {patched.stderr or patched.stdout}")
        else:
            tracer.kill()  # it stays a zombie
            detached = run(STACKREEL, "detach", "-p", child)
            check(detached.returncode == 0, f"{way}: detaching: {detached.stderr}")
        check(tracer.stdout.read() == alone, f"{way}: it goes on ({ends})")
        tracer.wait()


def main():
    with tempfile.TemporaryDirectory() as folder:
        program, trace = os.path.join(folder, "settings"), os.path.join(folder, "trace")
        build(SOURCE, program, "-O1", "-g", "-pthread")
        for way in ("nothing", *FILTERS, *LIMITS, *SIGNALS):
            alone = subprocess.run([program, way], capture_output=True, text=True, timeout=60)
            if alone.returncode == 77:
                print(f"{way}: cannot be had here")
                continue
            traced = subprocess.run([STACKREEL, "trace", "-a", "--traps", "-P", "read_text", "-P",
                                     "short_*", "-P", "step", "--buffer", "1", "-o", trace, "--", program, way],
                                    capture_output=True, text=True, timeout=60)
            if is_refused(traced.stderr):
                return SKIPPED
            check(traced.returncode == alone.returncode and traced.stdout == alone.stdout,
                  f"{way}: exit code {traced.returncode}")
            shown = subprocess.run([STACKREEL, "replay", "-f", "none", "--no-comment", "-i", trace],
                                   capture_output=True, text=True, timeout=60).stdout
            texts = shown.count('read_text("a text of the program\'s own")')
            has_filter = way in (*FILTERS, *LIMITS)
            check(texts == (1 if has_filter else CALLS), f"{way}: {texts} texts")
            check(shown.count("read_text(") == CALLS, f"{way}: all calls with texts are there")
            check(("texts were not read" in traced.stderr) == has_filter,
                  f"{way}: texts are told of")
            trapped = shown.count("short_one(")
            check(trapped == (1 if has_filter or way in SIGNALS else CALLS),
                  f"{way}: {trapped} calls by traps")
            if way in LIMITS:
                least = STEPS * (1 + (THREADS if way == "every_thread" else 0))
                check(steps_of(trace) >= least and ", 0 lost;" in traced.stderr,
                      f"{way}: {steps_of(trace)} steps")
            if way in ("strict", "every", "every_thread", "raw_strict"):
                leave(program, trace, way)
            if failures:
                print(traced.stderr)
    return result()


if __name__ == "__main__":
    sys.exit(main())
