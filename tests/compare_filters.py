#!/usr/bin/env python3
"""Filters and triggers while recording: of small programs, what `stackreel trace` keeps.

usage: compare_filters.py STACKREEL

1. A program whose calls all return: the tree of calls under each set of options must be the one that
   uftrace records of it (left out where uftrace is missing).
2. A program whose calls are left by longjmp, exceptions, fibers, tail calls, fork, signals and threads:
   within begin(), and outside of it, each kind of leaf is called a number of times that is known. What is
   recorded must be just those, whatever else happened in between.
3. Filters that are changed while a program runs: what is recorded between two changes, what is refused,
   and what status and the trace say of it. Tracing that is switched off, with no filter beside that.
Exit code 77 (skipped) where there is no compiler, or nothing can be traced."""

import collections
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from compare_uftrace import SKIPPED, compare, may_trace, our_calls, run, uftrace_calls

NEST = r"""
#include <unistd.h>
#define F __attribute__((noinline, noclone))
// Too short a function cannot be patched.
volatile int sum;
#define END sum = sum + 1
F void d(void) { END; }
F void c(void) { d(); END; }
// Longer than any other call takes on a busy machine.
F void slow(void) { usleep(150000); d(); END; }
F void b(void) { c(); d(); END; }
F void on(void) { d(); END; }
F void off(void) { d(); END; }
F void a(void) { b(); c(); slow(); END; }
F void r(int n) { if (n > 0) r(n - 1); d(); END; }
F void top(void) { a(); off(); b(); on(); c(); r(4); a(); END; }
__attribute__((no_instrument_function)) int main(void) { top(); top(); return 0; }
"""
NEST_FUNCTIONS = ["a", "b", "c", "d", "slow", "on", "off", "r", "top"]
# Options that mean the same to both.
NEST_OPTIONS = [
    ["-F", "b"],
    ["-F", "b", "-F", "slow"],
    ["-N", "b"],
    ["-F", "a", "-N", "c"],
    ["-N", "b", "-F", "c"],
    ["-D", "2"],
    ["-D", "2", "-F", "b"],
    ["-D", "2", "-F", "r"],
    ["-C", "c"],
    ["-C", "slow"],
    ["-C", "d", "-N", "b"],
    ["-t", "100ms"],
    ["-t", "100ms", "-F", "a"],
    ["-T", "b@depth=1"],
    ["-D", "2", "-T", "slow@depth=2"],
    ["-D", "2", "-F", "a", "-T", "c@depth=1"],
    ["-T", "a@time=100ms"],
    ["-T", "b@filter", "-T", "c@notrace"],
    ["-T", "b@filter,depth=2"],
    ["-T", "b@trace_off", "-T", "slow@trace_on"],
]

LEFT = r"""
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#define F extern "C" __attribute__((noinline, noclone))
// Too short a function cannot be patched.
volatile int sum;
#define END sum = sum + 1
constexpr int kRounds = 50;
F void leaf_plain() { END; }
F void leaf_jump() { END; }
F void leaf_throw() { END; }
F void leaf_fiber() { END; }
F void leaf_tail() { END; }
F void leaf_fork() { END; }
F void leaf_signal() { END; }
F void leaf_thread() { END; }
F void begin(void (*body)()) { body(); END; }
F void middle(void (*body)()) { body(); END; }

jmp_buf place;
F void jumps() { middle([] { leaf_jump(); longjmp(place, 1); }); }
F void throws() { middle([] { leaf_throw(); throw 1; }); }
F void phase_jump() {
  for (volatile int i = 0; i < kRounds; i = i + 1) {
    if (setjmp(place) == 0) begin(jumps);
    leaf_jump();
    if (setjmp(place) == 0) jumps();
    leaf_jump();
  }
}
F void phase_throw() {
  for (int i = 0; i < kRounds; ++i) {
    try { begin(throws); } catch (int) { leaf_throw(); }
    leaf_throw();
    try { throws(); } catch (int) { begin([] { leaf_throw(); leaf_throw(); }); }
  }
}
ucontext_t main_context, fiber_context;
char stack[256 << 10];
F void in_fiber() {
  begin([] {
    for (int i = 0; i < kRounds; ++i) { leaf_fiber(); swapcontext(&fiber_context, &main_context); }
  });
  for (;;) { leaf_fiber(); swapcontext(&fiber_context, &main_context); }
}
F void phase_fiber() {
  getcontext(&fiber_context);
  fiber_context.uc_stack.ss_sp = stack;
  fiber_context.uc_stack.ss_size = sizeof(stack);
  makecontext(&fiber_context, (void (*)())in_fiber, 0);
  for (int i = 0; i < 2 * kRounds; ++i) { swapcontext(&main_context, &fiber_context); leaf_fiber(); }
}
F void tail_two() { leaf_tail(); END; }
F __attribute__((optimize("O2"))) void tail_one() { tail_two(); }
F void phase_tail() {
  for (int i = 0; i < kRounds; ++i) { begin(tail_one); tail_one(); leaf_tail(); }
}
F void phase_fork() {
  begin([] { leaf_fork(); if (fork() == 0) { leaf_fork(); begin([] { leaf_fork(); }); _exit(0); } });
  if (fork() == 0) { leaf_fork(); begin([] { leaf_fork(); }); leaf_fork(); _exit(0); }
  while (wait(nullptr) > 0) {}
}
F void on_signal(int) { leaf_signal(); }
F void phase_signal() {
  signal(SIGUSR1, on_signal);
  for (int i = 0; i < kRounds; ++i) { begin([] { raise(SIGUSR1); leaf_signal(); }); raise(SIGUSR1); }
}
F void phase_thread() {
  std::thread threads[4];
  for (std::thread& t : threads) t = std::thread([] {
    for (int i = 0; i < kRounds; ++i) { begin(leaf_thread); leaf_thread(); leaf_thread(); }
  });
  for (std::thread& t : threads) t.join();
}
int main() {
  begin(leaf_plain);
  leaf_plain();
  phase_jump(); phase_throw(); phase_fiber(); phase_tail(); phase_fork(); phase_signal();
  phase_thread();
  leaf_plain();
}
"""
RUNNING = r"""
#include <unistd.h>
#define F __attribute__((noinline, noclone))
volatile int sum;
F void leaf(void) { sum = sum + 1; }
F void begin(void) { leaf(); __asm__ volatile(""); }
int main(void) { for (int i = 0; i < 60000; ++i) { begin(); leaf(); usleep(1000); } return 0; }
"""

ROUNDS = 50
# Calls within begin(), and outside of it.
LEFT_COUNTS = {
    "leaf_plain": (1, 2),
    "leaf_jump": (ROUNDS, 3 * ROUNDS),
    "leaf_throw": (3 * ROUNDS, 3 * ROUNDS),
    "leaf_fiber": (ROUNDS, 3 * ROUNDS),
    "leaf_tail": (ROUNDS, 2 * ROUNDS),
    "leaf_fork": (4, 2),
    "leaf_signal": (2 * ROUNDS, ROUNDS),
    "leaf_thread": (4 * ROUNDS, 8 * ROUNDS),
}


def trace(stackreel, folder, patterns, options, program):
    """The calls of each thread."""
    out = folder / "out.trace"
    shutil.rmtree(out, ignore_errors=True)
    named = [word for pattern in patterns for word in ("-P", pattern)]
    done = run([stackreel, "trace", *named, *options, "-o", out, "--", program])
    if done.returncode != 0:
        sys.exit(f"trace {' '.join(options)} ends with {done.returncode}: {done.stderr.decode()}")
    return our_calls(stackreel, out)


def one_tree(threads):
    """Of a program of one thread, whatever its id."""
    return {0: [call for thread in threads.values() for call in thread]}


def build_nest(folder, name="plain", flags=()):
    (folder / "nest.c").write_text(NEST)
    run(["gcc", "-O1", *flags, folder / "nest.c", "-o", folder / name])
    return folder / name


def compare_trees(stackreel, folder):
    build_nest(folder)
    build_nest(folder, "pg", ["-pg"])
    ok = True
    recording = folder / "recording"
    for options in NEST_OPTIONS:
        label = " ".join(options)
        # A machine may be so busy that a short call takes longer than a limit.
        for _ in range(3 if "100ms" in label else 1):
            shutil.rmtree(recording, ignore_errors=True)
            run(["uftrace", "record", "--no-pager", "--no-libcall", "--no-event", *options, "-d",
                 recording, folder / "pg"], cwd=folder)  # where it leaves its gmon.out
            expected = one_tree(uftrace_calls(recording))
            got = trace(stackreel, folder, NEST_FUNCTIONS, options, folder / "plain")
            same = compare(label, "the tree", expected, one_tree(got))
            print(f"{label}: {len(expected[0])} calls: {'same' if same else 'DIFFERENT'}")
            if same:
                break
        ok = ok and same
    return ok


def count_left(stackreel, folder):
    (folder / "left.cc").write_text(LEFT)
    run(["g++", "-O1", "-pthread", folder / "left.cc", "-o", folder / "left"])
    ok = True
    cases = [("-F", lambda inside, outside: inside), ("-N", lambda inside, outside: outside),
             ("", lambda inside, outside: inside + outside)]
    for option, wanted in cases:
        threads = trace(stackreel, folder, ["leaf_*", "middle", "jumps", "throws", "in_fiber", "phase_*",
                                            "tail_*", "on_signal"],
                        [option, "begin"] if option else [], folder / "left")
        counts = collections.Counter(name for calls in threads.values() for _, name in calls)
        for leaf, (inside, outside) in LEFT_COUNTS.items():
            if counts[leaf] != wanted(inside, outside):
                print(f"{option} begin: {counts[leaf]} calls of {leaf}, not {wanted(inside, outside)}")
                ok = False
        print(f"{option} begin: {sum(counts.values())} calls")
    return ok


class Running:
    """A program that runs while calls of `function` are traced, until the trace is detached."""

    def __init__(self, stackreel, folder, name, function):
        self.stackreel, self.out = stackreel, folder / f"{name}.trace"
        source, program = folder / "running.c", folder / "running"
        source.write_text(RUNNING)
        run(["gcc", "-O1", source, "-o", program])
        self.program = subprocess.Popen([program])
        self.tracer = subprocess.Popen([stackreel, "trace", "-q", "-p", str(self.program.pid), "-P",
                                        function, "-o", self.out])

    def __enter__(self):
        while self.ask("status", pause=0.1).returncode != 0:
            if self.tracer.poll() is not None:
                self.program.kill()
                sys.exit(f"trace -p ends with {self.tracer.returncode}")
        return self

    def __exit__(self, *_):
        self.ask("detach")
        self.tracer.wait(timeout=30)
        self.program.kill()
        self.program.wait()

    def ask(self, command, *words, pause=0.3):
        time.sleep(pause)
        return run([self.stackreel, command, "-p", str(self.program.pid), *words])

    def status(self):
        return json.loads(self.ask("status", "--json").stdout)

    def calls(self):
        return [call for calls in our_calls(self.stackreel, self.out).values() for call in calls]

    def names(self):
        return [name for _, name in self.calls()]


def change_while_running(stackreel, folder):
    """What is recorded before a filter is set, under it, and when it is gone."""
    faults = []
    with Running(stackreel, folder, "changed", "leaf") as running:
        if running.ask("filter", "-F", "begin", "-D", "2").returncode != 0:
            faults.append("filter -F begin was refused")
        status = running.status()
        if status.get("filters") != {"-F begin": 1} or status.get("limits") != {"levels (-D)": 2}:
            faults.append(f"status says {status}")
        refused = running.ask("filter", "-N", "begim")
        if refused.returncode == 0 or b"near: begin" not in refused.stderr:
            faults.append(f"-N begim: {refused.returncode} {refused.stderr}")
        if running.status().get("filters") != {"-F begin": 1}:
            faults.append("what was refused changed what is in force")
        running.ask("filter", "--none")
    calls = running.calls()
    names = [name for _, name in calls]
    if "begin" not in names:
        faults.append("nothing was recorded within begin()")
    else:
        first, last = names.index("begin"), len(names) - names[::-1].index("begin")
        within = [depth for depth, name in calls[first:last] if name == "leaf"]
        if 0 in within or first == 0 or names[last + 1:].count("leaf") == 0:
            faults.append(f"not what was in force: {len(names)} calls, begin() from {first} to {last}")
    said = [line.split()[1:-2] for line in run([stackreel, "info", "-i", running.out]).stdout.decode()
            .splitlines() if line.startswith("filters")]
    if said != [["-F", "begin", "-D", "2"], ["none"]]:
        faults.append(f"the trace says {said}")
    print(f"while it runs: {len(names)} calls: {'; '.join(faults) if faults else 'as they should be'}")
    return not faults


def switch_off(stackreel, folder):
    """--tracing off with nothing beside it, from the start and while the program runs."""
    faults = []
    threads = trace(stackreel, folder, NEST_FUNCTIONS, ["--tracing", "off"], build_nest(folder))
    if any(threads.values()):
        faults.append(f"off from the start: {threads}")
    with Running(stackreel, folder, "switched", "leaf") as running:
        running.ask("filter", "--tracing", "off")
        running.ask("patch", "begin")
        running.ask("unpatch", "begin")
        running.ask("filter", "--tracing", "on")
        running.ask("unpatch", "leaf")
    names = running.names()
    if "leaf" not in names or "begin" in names:
        faults.append(f"switched off while it runs: {collections.Counter(names)}")
    print(f"switched off: {'; '.join(faults) if faults else 'as it should be'}")
    return not faults


def keep_filters(stackreel, folder):
    """--tracing alone keeps what is in force; anything else replaces it."""
    faults = []

    def expect(status, filters, limits, tracing):
        got = (status.get("filters"), status.get("limits"), status["recorded"]["tracing is on"])
        if got != (filters, limits, tracing):
            faults.append(f"status says {got}, not {(filters, limits, tracing)}")

    with Running(stackreel, folder, "kept", "leaf") as running:
        running.ask("filter", "-F", "begin", "-D", "2", "-t", "1ns")
        limits = {"levels (-D)": 2, "nanoseconds (-t)": 1}
        for state in ("off", "on"):
            said = running.ask("filter", "--tracing", state).stdout
            if said != f"tracing is {state}; filters are as they were\n".encode():
                faults.append(f"filter says {said}")
            expect(running.status(), {"-F begin": 1}, limits, int(state == "on"))
        running.ask("filter", "--tracing", "off", "-D", "3")
        expect(running.status(), None, {"levels (-D)": 3}, 0)
        running.ask("filter", "--none")
        expect(running.status(), None, None, 1)
    print(f"what stays in force: {'; '.join(faults) if faults else 'as it should be'}")
    return not faults


def main():
    stackreel = pathlib.Path(sys.argv[1]).resolve()
    if not shutil.which("gcc") or not shutil.which("g++"):
        print("skipped: no compiler")
        return SKIPPED
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        if not may_trace(stackreel, folder):
            return SKIPPED
        results.append(count_left(stackreel, folder))
        results.append(change_while_running(stackreel, folder))
        results.append(switch_off(stackreel, folder))
        results.append(keep_filters(stackreel, folder))
        if shutil.which("uftrace"):
            results.append(compare_trees(stackreel, folder))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
