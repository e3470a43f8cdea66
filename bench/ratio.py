#!/usr/bin/env python3
"""Times two commands by turns and prints the ratio of their CPU seconds.

usage: ratio.py [--runs N] [--name TEXT] 'COMMAND A' 'COMMAND B'

Both run under sh, their standard output goes to /dev/null. Counted is the CPU of the command and
of all its descendants, also of those that nobody waits for (perf leaves its addr2line behind): they
become children of this script, which waits for them. After one warm-up each, they run by
turns, A B A B …, so that a drift of the machine's speed meets both. Printed are the medians of user
+ system seconds, the peak memory, and the median of B's CPU divided by A's, pair by pair: how many
times as fast A is.
"""

import argparse
import ctypes
import os
import statistics
import subprocess
import sys


PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


def adopt_orphans():
    """Makes descendants whose parent has ended children of this process."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit(f"ratio: cannot become a subreaper: {os.strerror(ctypes.get_errno())}")


def run(command):
    """Runs a command; returns (CPU seconds of it and its descendants, peak KB, exit code)."""
    with open(os.devnull, "wb") as null:
        child = subprocess.Popen(["sh", "-c", "exec " + command], stdout=null, stderr=null)
    seconds, peak = 0.0, 0
    while True:
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            break
        seconds += usage.ru_utime + usage.ru_stime  # with those of children that it waited for
        if pid == child.pid:
            peak = usage.ru_maxrss
            child.returncode = os.waitstatus_to_exitcode(status)
    return seconds, peak, child.returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--name", default="")
    parser.add_argument("a")
    parser.add_argument("b")
    args = parser.parse_args()
    adopt_orphans()
    times = {"a": [], "b": []}
    peaks = {"a": 0, "b": 0}
    for turn in range(args.runs + 1):
        for key, command in (("a", args.a), ("b", args.b)):
            seconds, peak, code = run(command)
            if code != 0:
                sys.exit(f"ratio: exit code {code} of: {command}")
            if turn > 0:
                times[key].append(seconds)
                peaks[key] = max(peaks[key], peak)
    ratios = [b / max(a, 1e-3) for a, b in zip(times["a"], times["b"])]
    print(f"{args.name or 'ratio'}: A {statistics.median(times['a']):.3f} s CPU, "
          f"{peaks['a'] // 1024} MB; B {statistics.median(times['b']):.3f} s CPU, "
          f"{peaks['b'] // 1024} MB; A is {statistics.median(ratios):.1f} times as fast "
          f"({min(ratios):.1f} to {max(ratios):.1f}, {args.runs} pairs)")


if __name__ == "__main__":
    main()
