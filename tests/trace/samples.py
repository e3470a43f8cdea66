#!/usr/bin/env python3
"""trace --with-samples of a program with hot traced functions: its stacks are whole and true, and
the times of samples and calls are of one clock. Usage: samples.py STACKREEL SAMPLES.C"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile

from checks import SKIPPED, build, check, result

STACKREEL, SOURCE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
# Doubt of the two clocks, in nanoseconds: docs/tracing.md.
DOUBT = 20_000
# Percent of the stacks. It is 99 to 100 where the recorder has a CPU when it wants one, and none
# where return addresses are not looked for.
LEAST_WHOLE = 80


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def samples_of(path):
    """(tid, time, names from the outermost function of the program on) of each sample."""
    done = run(STACKREEL, "script", "-i", path, "--format=json")
    assert done.returncode == 0, done.stderr
    out = []
    for line in done.stdout.splitlines():
        sample = json.loads(line)
        if "frames" not in sample:
            continue
        frames = [(f.get("sym", "?"), f.get("dso", "")) for f in sample["frames"]]
        out.append((sample["tid"], sample["time_ns"], list(reversed(frames))))
    return out


def way(frames):
    """The functions of the program, in turn."""
    return tuple(name for name, dso in frames if dso.endswith("/program"))


def is_whole(frames):
    """Stacks that are not are counted, and may lead anywhere; the first samples are of the loader."""
    return frames[0][0] in ("_start", "clone3", "__clone3")


def check_ways(traced, plain):
    traced = [sample for sample in traced if is_whole(sample[2])]
    # What is in the program's functions, entered or not; prefixes of ways are ways.
    known = set()
    for _, _, frames in plain:
        names = way(frames)
        known.update(names[:i] for i in range(len(names) + 1))
        # Untraced, it is left before anybody looks.
        if "phase_tail" in names:
            known.add(names[:names.index("phase_tail") + 1] + ("tail_caller",))
        # Traced, it takes long enough to be met.
        for i, name in enumerate(names):
            if name.startswith("phase_"):
                known.add(names[:i + 1] + ("Now",))
    wrong = collections.Counter(way(f) for _, _, f in traced if way(f) not in known)
    share = sum(wrong.values()) / len(traced)
    # Ways that are rare need not have been met in both runs.
    check(share < 0.02, f"{share:.2%} of the traced stacks are none of the untraced program's: "
          f"{wrong.most_common(3)}")
    frequent = collections.Counter(way(f) for _, _, f in plain)
    met = {way(f) for _, _, f in traced}
    for names, count in frequent.items():
        if count > len(plain) / 50:
            check(names in met, "met: " + ";".join(names))


def phases_of(directory):
    """tid → (start, end, name) of the long calls."""
    done = run(STACKREEL, "dump", "-i", directory, "--format=json",
               "--filter", "phase_*", "--depth", "1")
    assert done.returncode == 0, done.stderr
    calls, open_calls = collections.defaultdict(list), {}
    for line in done.stdout.splitlines()[1:]:
        event = json.loads(line)
        if event["event"] == "entry":
            open_calls[event["tid"]] = event
        elif event["event"] in ("exit", "left"):
            entry = open_calls.pop(event["tid"])
            calls[event["tid"]].append((entry["time_ns"], event["time_ns"], entry["function"]))
    return calls


def check_clock(traced, calls):
    inside = outside = 0
    for tid, time, frames in traced:
        for phase in [name for name in way(frames) if name.startswith("phase_")]:
            fits = any(start - DOUBT <= time <= end + DOUBT
                       for start, end, name in calls[tid] if name == phase)
            inside += fits
            outside += not fits
    check(inside > 100, f"{inside} samples lie within the calls that their stacks tell of")
    check(outside == 0, f"{outside} do not")


def check_record_beside():
    """Another stackreel traces: `record` finds that out by itself."""
    with subprocess.Popen(["./program", "100"], stdout=subprocess.DEVNULL) as program:
        pid = str(program.pid)
        with subprocess.Popen([STACKREEL, "trace", "-P", ".", "-p", pid, "-o", "beside",
                               "--duration", "3"], stderr=subprocess.PIPE, text=True) as trace:
            trace.stderr.readline()  # that it has begun
            done = run(STACKREEL, "record", "-F", "1500", "-p", pid, "-o", "beside.data",
                       "--duration", "1", "-v")
            left = trace.stderr.read()
        program.kill()
    share = re.search(r"([0-9.]+) % of (\d+) user stacks complete", done.stderr)
    check(share and float(share[1]) >= LEAST_WHOLE, f"recorded by itself: {share and share[0]}")
    check("unwind.traced_return_inferred" in done.stderr, "through traced functions")
    check("every byte is as it was" in left, "the trace ends as it should")


def check_followed():
    """What was executed has an agent of its own, whose code has a name as well."""
    for command in ("exec ./program 5", "./program 5; true"):
        traced = run(STACKREEL, "trace", "--with-samples=1500", "--follow", "-P", ".", "-o", "followed",
                     "--", "sh", "-c", command)
        check(traced.returncode == 0, f"{command}: {traced.returncode} {traced.stderr}")
        shown = run(STACKREEL, "report", "--samples", "-i", "followed", "-g", "none",
                    "--comm", "program").stdout
        # CHILDREN% SELF% COMMAND OBJECT
        def share(of):
            rows = re.findall(r"^ *[0-9.]+% +([0-9.]+)% +program +" + of, shown, re.M)
            return sum(float(row) for row in rows)
        agent, unknown = share(r"\[stackreel agent\]"), share(r"\[(?:JIT|unknown)\]")
        # Those of its first moments may be taken before anybody can have looked.
        check(agent > 5 and unknown < 2, f"{command}: {agent:.1f} % in the agent, {unknown:.1f} % unknown")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        build(SOURCE, "program", "-O2", "-g", "-pthread")
        plain = run(STACKREEL, "record", "-F", "1500", "-o", "plain.data", "./program", "10")
        if plain.returncode == 125:
            print(plain.stderr)
            sys.exit(SKIPPED)  # perf events are refused here
        traced = run(STACKREEL, "trace", "-v", "--with-samples=1500", "-P", ".", "-o", "trace",
                     "--", "./program", "10")
        print(traced.stderr)
        check(traced.returncode == 0, f"the program's own exit code: {traced.returncode}")
        check("done" in traced.stdout, "its output")
        check(", 0 lost; " in traced.stderr, "no calls are lost")
        stats = run(STACKREEL, "report", "--samples", "-i", "trace", "--stats")
        whole = [line for line in stats.stdout.splitlines() if line.startswith("# Complete")][0]
        complete, total = [int(word.replace(",", "")) for word in whole.split()
                           if word.replace(",", "").isdigit()]
        check(total > 200, f"{total} stacks")
        check(complete >= LEAST_WHOLE / 100 * total, whole)
        check("# Lost samples: none" in stats.stdout, "no samples are lost")
        check("[unknown]" not in stats.stdout and "[JIT]" not in stats.stdout,
              "all code has a name")
        traced_samples = samples_of("trace/perf.data")
        check_ways(traced_samples, samples_of("plain.data"))
        check_clock(traced_samples, phases_of("trace"))
        check_record_beside()
        check_followed()
        info = run(STACKREEL, "info", "-i", "trace")
        check("CLOCK_MONOTONIC" in info.stdout, "info tells of the samples and their clock")
        chrome = json.loads(run(STACKREEL, "dump", "-i", "trace", "--format=chrome",
                                "--filter", "phase_*", "--depth", "1").stdout)
        kinds = collections.Counter(event["ph"] for event in chrome["traceEvents"])
        check(kinds["P"] == len(traced_samples), f"samples for Chrome: {kinds['P']}")
        replay = run(STACKREEL, "replay", "--samples", "-i", "trace", "-F", "phase_*", "-D", "1")
        check(replay.stdout.count("/* sampled: ") == len(traced_samples), "samples in the replay")
    sys.exit(result())


main()
