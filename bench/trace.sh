#!/usr/bin/env bash
# The cost of a traced call against uftrace, by turns, for each way to compile bench/programs/calls.c.
# usage: bench/trace.sh [VARIANT]...       plain pg fentry nop patchable (all unless said)
# environment: RUNS (5), CALLS (10000000), STACKREEL (build/release/src/cli/stackreel)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export STACKREEL=${STACKREEL:-$PWD/build/release/src/cli/stackreel}
out=$PWD/out/bench/trace
mkdir -p "$out"

flags_of() {
  case $1 in
    plain) ;;
    pg) echo -pg ;;
    fentry) echo -pg -mfentry ;;
    nop) echo -pg -mfentry -mnop-mcount -mrecord-mcount -fno-pic -no-pie ;;
    patchable) echo -fpatchable-function-entry=5 ;;
    *) echo "no variant $1" >&2 && return 1 ;;
  esac
}

[ $# -gt 0 ] || set -- plain pg fentry nop patchable
for variant; do
  flags=$(flags_of "$variant")
  # shellcheck disable=SC2086
  gcc -O2 $flags bench/programs/calls.c -o "$out/$variant"
done

exec python3 - "$out" "${RUNS:-5}" "${CALLS:-10000000}" "$@" <<'END'
import os, pathlib, re, shutil, statistics, subprocess, sys

out, runs, calls = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])


def once(command, directory):
    """(best, mean, CPU mean) in ns a call, bytes a call; None where the tool records nothing."""
    done = subprocess.run(command, capture_output=True, text=True)
    said = re.search(r"best=([\d.]+) mean=([\d.]+) cpu=([\d.]+)", done.stderr)
    if done.returncode != 0 or said is None:
        return None
    size = sum(file.stat().st_size for file in directory.iterdir()) if directory else 0
    if directory:
        shutil.rmtree(directory)
    # Less than a bit a call: not recorded.
    if directory and size * 8 < calls:
        return None
    return (*map(float, said.groups()), size / calls)


def medians(figures):
    return None if not figures or None in figures else [statistics.median(f) for f in zip(*figures)]


print(f"{calls} calls, medians of {runs}; ns a call: best stretch, sustained, CPU of the program; bytes a call")
for variant in sys.argv[4:]:
    program = [str(out / variant), str(calls)]
    ours, theirs = out / "ours", out / "theirs"
    # What is compiled for it is traced by uftrace without being named.
    named = [] if variant in ("pg", "fentry") else ["-P", "leaf"]
    commands = {
        "untraced": (program, None),
        "stackreel": ([os.environ["STACKREEL"], "-q", "trace", "-P", "leaf", "-o", str(ours), "--",
                       *program], ours),
        "uftrace": (["uftrace", "record", *named, "-d", str(theirs), *program], theirs),
    }
    figures = {name: [] for name in commands}
    for _ in range(runs):
        for name, (command, directory) in commands.items():
            figures[name].append(once(command, directory))
    found = {name: medians(values) for name, values in figures.items()}
    for name, median in found.items():
        text = "cannot" if median is None else "{:8.1f} {:8.1f} {:8.1f} {:8.1f}".format(*median)
        print(f"{variant:10} {name:10} {text}")
    mine, other = found["stackreel"], found["uftrace"]
    if mine and other:
        print(f"{variant:10} ratio      " + " ".join(f"{m / o:8.3f}" for m, o in zip(mine, other)),
              flush=True)
END
