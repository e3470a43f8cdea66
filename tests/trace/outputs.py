#!/usr/bin/env python3
"""Where traces are written, and what becomes of calls that cannot be: outputs.py STACKREEL SOURCE

Exit code 77: there is no compiler, or nothing may be traced here."""
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

from checks import SKIPPED, build, check, is_refused, result

STACKREEL, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
CALLS = 200_000  # each of the two times; several chunks


class Trace:
    """A command that is traced, once its first calls are made."""

    def __init__(self, program, trace, *options, calls=CALLS, before=None):
        self.process = subprocess.Popen(
            [STACKREEL, "trace", "-P", "step", "-o", trace, *options, "--", program, str(calls)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=before)
        self.is_ready = self.process.stdout.readline() == "ready\n"

    def finish(self):
        """Lets it go on to its end: what was said, how many calls were recorded, and lost."""
        _, said = self.process.communicate("x\n", timeout=60)
        counts = re.search(r"stackreel: (\d+) calls? of \d functions? in .*, (\d+) lost", said)
        return said, *((int(number) for number in counts.groups()) if counts else (0, 0))


def shown_calls(trace):
    report = subprocess.run([STACKREEL, "report", "-i", trace, "--format=json"],
                            capture_output=True, text=True, timeout=60)
    found = re.search(r'"calls": ?(\d+)', report.stdout)
    return int(found[1]) if found else 0, report


def removed_while_it_is_written(program, folder):
    trace = os.path.join(folder, "removed")
    traced = Trace(program, trace)
    shutil.rmtree(trace)
    said, calls, lost = traced.finish()
    check((calls, lost) == (0, 2 * CALLS), f"removed: {calls} calls, {lost} lost")
    check("removed while it was written" in said, f"removed: it is said {said}")
    check(traced.process.returncode == 1, f"removed: exit code {traced.process.returncode}")


def disk_full(program, folder):
    """As good as: a limit of the files' size."""
    trace = os.path.join(folder, "full")
    limit = 1_500_000  # the memory that is shared with the program counts as well
    traced = Trace(program, trace, "-z0", "--buffer=1",
                   before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    warning = traced.process.stderr.readline()  # while it goes on
    said, calls, lost = traced.finish()
    check(0 < lost < 2 * CALLS and calls + lost == 2 * CALLS, f"full: {calls} and {lost} lost")
    check("warning: cannot write" in warning, f"full: warned of it {warning}")
    check(f"({lost} calls)" in said, f"full: it is said {said}")
    check(traced.process.returncode == 1, f"full: exit code {traced.process.returncode}")
    shown, report = shown_calls(trace)
    check(shown == calls, f"full: {shown} of {calls} are shown")
    check(f"could not be written: {lost} calls" in report.stderr, f"full: {report.stderr}")
    check(report.returncode == 0, "full: what was written is whole")


def dropped(program, folder):
    """Open calls are what they were behind each place where calls were dropped."""
    trace = os.path.join(folder, "dropped")
    traced = Trace(program, trace, "-P", "main", "-P", "make_calls", "--on-full=drop", "--buffer=1",
                   "-z19", calls=10 * CALLS)
    said, calls, lost = traced.finish()
    made = 20 * CALLS + 3
    check(calls > 0 and made <= calls + lost <= made * 1.01,
          f"dropped: {calls} calls and {lost} lost of {made}")
    check(traced.process.returncode == 0, f"dropped: exit code {traced.process.returncode}")
    report = subprocess.run([STACKREEL, "report", "-i", trace, "--format=json"],
                            capture_output=True, text=True, timeout=60)
    functions = {row["function"]: row["calls"] for row in json.loads(report.stdout)["functions"]}
    check(functions["main"] == 1, f"dropped: main was called {functions['main']} times")
    check(functions["make_calls"] <= 2, f"dropped: make_calls {functions['make_calls']} times")
    check(f"{lost} calls were not recorded" in report.stderr, f"dropped: {report.stderr}")
    info = subprocess.run([STACKREEL, "info", "-i", trace], capture_output=True, text=True,
                          timeout=60)
    check(f"{lost} calls no space" in info.stdout, f"dropped: info says {info.stdout}")


def told_alike(program, folder):
    """status and the trace tell of the same functions, patched and refused."""
    trace = os.path.join(folder, "alike")
    traced = Trace(program, trace, "-P", ".", "-P", "malloc@libc", "-P", "_exit@libc", calls=10)
    with open(f"/proc/{traced.process.pid}/task/{traced.process.pid}/children") as children:
        pid = children.read().split()[0]
    status = json.loads(subprocess.run([STACKREEL, "status", "-p", pid, "--json"],
                                       capture_output=True, text=True, timeout=60).stdout)
    traced.process.communicate("x\n", timeout=60)
    info = json.loads(subprocess.run([STACKREEL, "info", "-i", trace, "--format=json"],
                                     capture_output=True, text=True, timeout=60).stdout)
    refused = {name.removeprefix("refused: "): count for name, count in info["patches"].items()
               if name.startswith("refused: ")}
    check(len(refused) > 1 and refused == status["refused"],
          f"alike: refused {refused} and {status['refused']}")
    patched, sites = info["patches"]["patched"], status["sites"]["patched"]
    check(patched == sites, f"alike: {patched} and {sites} patched")


def asked_at_once(folder):
    """A command finds the trace's socket whenever it looks, also where the tracer has no CPU."""
    runtime = os.path.join(folder, "runtime")
    os.mkdir(runtime, 0o700)
    command = 'test -S "$XDG_RUNTIME_DIR/stackreel-$$.sock" && echo there'
    times = 10
    found = 0
    for _ in range(times):
        run = subprocess.run(
            [STACKREEL, "trace", "-P", "malloc@libc", "-o", os.path.join(folder, "asked"), "--",
             "sh", "-c", command], capture_output=True, text=True, timeout=60,
            env=dict(os.environ, XDG_RUNTIME_DIR=runtime),
            preexec_fn=lambda: os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]))
        found += run.stdout == "there\n"
    check(found == times, f"asked at once: {found} of {times} found the socket")


def named_as_asked(program, folder):
    """A function that has several names is called as it was named."""
    trace = os.path.join(folder, "named")
    for name in ("open", "open64"):
        Trace(program, trace, "-P", f"{name}@libc", calls=1).finish()
        report = subprocess.run([STACKREEL, "report", "-i", trace, "--format=json"],
                                capture_output=True, text=True, timeout=60)
        functions = [row["function"] for row in json.loads(report.stdout)["functions"]]
        check(name in functions and len(functions) == 2, f"named: {functions}, asked for {name}")


def only_later(program, folder):
    """What only a program has that is executed later, and what none has."""
    second = os.path.join(folder, "second")
    build(SOURCE, second, "-O1", "-g", "-Dstep=later_step")
    for pattern, code, calls in (("later_step", 0, 2), ("no_step", 1, 0)):
        run = subprocess.run([STACKREEL, "trace", "--follow", "-P", pattern, "-o",
                              os.path.join(folder, "later"), "--", program, "1", second, "1"],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        check(run.returncode == code, f"later: {pattern}: exit code {run.returncode}")
        check(f"stackreel: {calls} calls" in run.stderr, f"later: {pattern}: {run.stderr}")
        is_unmatched = f"'{pattern}' has matched nothing" in run.stderr
        check(is_unmatched == (calls == 0), f"later: {pattern} is told of as unmatched")
        check(f"'{pattern}' names nothing in this program; later" in run.stderr.split("\n")[0],
              f"later: {pattern} is told of at once")


def in_use(program, folder):
    trace = os.path.join(folder, "used")
    first = Trace(program, trace)
    for taken in (trace, trace + ".old"):
        if taken != trace:
            os.rename(trace, taken)
            os.mkdir(trace)
        second = subprocess.run([STACKREEL, "trace", "-P", "step", "-o", trace, "--", program],
                                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                timeout=60)
        check(second.returncode == 2, f"in use: exit code {second.returncode}")
        check(f"another stackreel trace writes to {taken}\n" in second.stderr,
              f"in use: it is said {second.stderr}")
    _, calls, lost = first.finish()
    check((calls, lost) == (2 * CALLS, 0), f"in use: {calls} calls, {lost} lost")
    check(shown_calls(trace + ".old")[0] == 2 * CALLS, "in use: they are there")


def failed_start(program, folder):
    """Traces that were there are as they were, however often."""
    trace = os.path.join(folder, "good")
    for calls in (1, 2):
        Trace(program, trace, calls=calls).finish()
    before = [shown_calls(path)[0] for path in (trace, trace + ".old")]
    for _ in range(2):
        traced = subprocess.run([STACKREEL, "trace", "-P", "step", "-U", "step", "-o", trace, "--",
                                 program, "1"], capture_output=True, text=True, timeout=60)
        check(traced.returncode == 125, f"failed start: {traced.returncode} {traced.stderr}")
        after = [shown_calls(path)[0] for path in (trace, trace + ".old")]
        check(before == [4, 2] and after == before, f"failed start: {before} became {after}")
    left = [name for name in os.listdir(folder) if name.startswith("good")]
    check(sorted(left) == ["good", "good.old"], f"failed start: {left} are there")


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "outputs")
        build(SOURCE, program, "-O1", "-g")
        first = Trace(program, os.path.join(folder, "trace"), calls=1)
        said, *_ = first.finish() if first.is_ready else first.process.communicate()[1:]
        if is_refused(said):
            return SKIPPED
        removed_while_it_is_written(program, folder)
        disk_full(program, folder)
        failed_start(program, folder)
        dropped(program, folder)
        told_alike(program, folder)
        asked_at_once(folder)
        named_as_asked(program, folder)
        only_later(program, folder)
        in_use(program, folder)
    return result()


if __name__ == "__main__":
    sys.exit(main())
