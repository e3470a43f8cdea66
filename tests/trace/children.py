#!/usr/bin/env python3
"""Children of a traced program that execute others: children.py STACKREEL SOURCE

Exit code 77: there is no compiler, or nothing may be traced here."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from checks import SKIPPED, build, check, failures, is_refused, result

STACKREEL, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])


def run(*words):
    return subprocess.run([STACKREEL, *words], capture_output=True, text=True, timeout=60)


def traced(trace, *words, options=("--follow",)):
    return run("trace", *options, "-P", "step", "-o", trace, "--", *words)


def not_traced(said):
    """How many children are told of as not traced."""
    found = re.search(r"(\d+) child process\w* ha\w+ executed", said)
    return int(found[1]) if found else 0


def followed(said):
    found = re.search(r"followed into (\d+) program", said)
    return int(found[1]) if found else 0


def calls_of(trace, function="step"):
    shown = run("report", "-i", trace, "--format=json").stdout
    rows = json.loads(shown)["functions"] if shown else []
    return sum(row["calls"] for row in rows if row["function"] == function)


def without_follow(program, trace):
    """They are counted; those that could execute nothing are not."""
    for way in ("fork", "vfork", "spawn"):
        for command, times, counted in (("/bin/true", 3, 3), ("/nowhere/third", 2, 0)):
            ran = traced(trace, program, way, str(times), command, options=())
            if is_refused(ran.stderr):
                return False
            check(ran.returncode == 0, f"{way} {command}: exit code {ran.returncode}")
            check(not_traced(ran.stderr) == counted,
                  f"{way} {command}: {not_traced(ran.stderr)} are told of")
    return True


def of_each_kind(program, trace):
    """All that they execute is traced, whoever executes it."""
    leaf = f"{program} fork 0"
    cases = [([program, way, "3", program, "fork", "0"], 8, 3) for way in ("fork", "vfork", "spawn")]
    cases += [
        ([program, "fork", "2", "/nowhere/third"], 2, 0),
        (["sh", "-c", f"{leaf}; {leaf}"], 4, 2),
        (["sh", "-c", f"{leaf} | {leaf}; ({leaf}); true"], 6, 3),
        (["env", "-i", "timeout", "20", program, "fork", "0"], 2, 2),
        (["sh", "-c", f"{program} vfork 2 /bin/sh -c '{leaf}; true'; true"], 6, 5),
        # Many at a time.
        (["sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do {leaf} & done; wait"], 16, 8),
    ]
    for words, calls, programs in cases:
        label = " ".join(words).replace(program, "children")
        alone = subprocess.run(words, capture_output=True, text=True, timeout=60)
        ran = traced(trace, *words)
        check((ran.returncode, ran.stdout) == (alone.returncode, alone.stdout),
              f"{label}: exit code {ran.returncode}, {ran.stdout!r}")
        check(calls_of(trace) == calls, f"{label}: {calls_of(trace)} calls of {calls}")
        check(followed(ran.stderr) == programs and not_traced(ran.stderr) == 0,
              f"{label}: followed into {followed(ran.stderr)} of {programs}")
        if failures:
            print(ran.stderr)
    # What it shows of a process is one.
    info = json.loads(run("info", "-i", trace, "--format=json").stdout)
    check(len({thread["pid"] for thread in info["threads"]}) == 8, "each is a process")
    uftrace = trace + ".uftrace"
    check(run("convert", "--to=uftrace", "-i", trace, "-o", uftrace).returncode == 0, "converted")
    with open(os.path.join(uftrace, "task.txt")) as tasks:
        check(tasks.read().count("FORK ") >= 8, "their forks are told of")


def whose_parent_executes(program, trace):
    """A child that its parent has left behind goes on recording, and is left at the end."""
    ran = traced(trace, program, "leave", "3", program, "wait", "6")
    # Of the parent 1, of the child 1 + 3 + 1 (the first it has from its parent), then 1 + 6 + 1.
    check(calls_of(trace) == 1 + 4 + 8, f"leave: {calls_of(trace)} calls")
    check(followed(ran.stderr) == 1, f"leave: {ran.stderr}")
    left = subprocess.run(["pgrep", "-f", program], capture_output=True, text=True).stdout.split()
    check(not left, f"leave: {left} are there")


def pid_of(program):
    """Of the one that waits."""
    for _ in range(500):
        found = subprocess.run(["pgrep", "-f", f"^{program} wait"], capture_output=True, text=True)
        if found.stdout:
            return int(found.stdout.split()[0])
        time.sleep(0.01)
    return 0


def changed_and_left(program, trace):
    """patch, unpatch and filter are for all; what runs at the end is left as it was."""
    with subprocess.Popen(["sh", "-c", f"read line; {program} wait 25; true"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as target:
        with subprocess.Popen([STACKREEL, "trace", "--follow", "-p", str(target.pid), "-P", "step",
                               "-o", trace], stderr=subprocess.PIPE, text=True) as tracer:
            tracer.stderr.readline()
            target.stdin.write("\n")
            target.stdin.flush()
            check(target.stdout.readline() == "ready\n", "changed: it runs")
            asked = str(target.pid)
            patched = run("patch", "-p", asked, "other")
            check("1 function patched" in patched.stdout, f"changed: {patched}")
            check(run("patch", "-p", asked, "zebra").returncode == 1, "changed: no such function")
            check('"followed children": 1' in run("status", "-p", asked, "--json").stdout,
                  "changed: status tells")
            time.sleep(0.5)
            check(run("unpatch", "-p", asked, "step").returncode == 0, "changed: unpatched")
            time.sleep(0.3)
            child = pid_of(program)
            tracer.send_signal(signal.SIGINT)
            said = tracer.communicate(timeout=60)[1]
        check("every byte is as it was" in said and tracer.returncode == 0, f"changed: {said}")
        others = calls_of(trace, "other")
        check(others >= 6 and calls_of(trace) < others + 4, f"changed: {others} others, {said}")
        # Nobody traces it, so it can be.
        again = run("trace", "-p", str(child), "-P", "step", "--duration", "0.3", "-o", trace)
        check(again.returncode == 0 and calls_of(trace) >= 2, f"changed: again {again.stderr}")
        check(target.wait(timeout=60) == 0, "changed: it ends well")


def killed(program, trace):
    """In whatever state children are when the tracer is killed or told to end, they go on."""
    wrong = 0
    for i in range(12):
        words = ["sh", "-c", f"for i in 1 2 3 4 5 6; do {program} vfork 1 {program} fork 0; done"]
        alone = subprocess.run(words, capture_output=True, text=True, timeout=60).stdout
        tracer = subprocess.Popen([STACKREEL, "trace", "--follow", "--duration", str(0.02 + 0.03 * i),
                                   "-P", "step", "-o", trace, "--", *words], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        out, said = tracer.communicate(timeout=60)
        wrong += out != alone or tracer.returncode != 0
        if wrong:
            print(out, said, tracer.returncode)
    check(wrong == 0, f"ended early: {wrong} of 12 went wrong")


def main():
    with tempfile.TemporaryDirectory() as folder:
        program, trace = os.path.join(folder, "children"), os.path.join(folder, "trace")
        build(SOURCE, program, "-O1", "-g")
        if not without_follow(program, trace):
            return SKIPPED
        of_each_kind(program, trace)
        whose_parent_executes(program, trace)
        changed_and_left(program, trace)
        killed(program, trace)
    return result()


if __name__ == "__main__":
    sys.exit(main())
