#!/usr/bin/env bash
# Attaching to a process and patching a thousand functions: from the start of stackreel to when all
# record; leaving it again, from Ctrl-C to the end of stackreel; and the longest stop of the process,
# from the first thread asked to stop to the last let go.
# usage: bench/attach.sh [THREADS[:BUSY]]...      1 50:2 50 200:2 200 unless said
# environment: RUNS (9), STACKREEL (build/release/src/cli/stackreel)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export STACKREEL=${STACKREEL:-$PWD/build/release/src/cli/stackreel}
out=$PWD/out/bench/attach
mkdir -p "$out"
gcc -O2 -pthread bench/programs/functions.c -o "$out/functions"
[ $# -gt 0 ] || set -- 1 50:2 50 200:2 200

exec python3 - "$out" "${RUNS:-9}" "$@" <<'END'
import os, re, signal, statistics, subprocess, sys, time

out, runs = sys.argv[1], int(sys.argv[2])
print(f"median (least, most) of {runs}; threads that run meanwhile: all, or as said")
for case in sys.argv[3:]:
    threads, _, busy = case.partition(":")
    target = subprocess.Popen([f"{out}/functions", threads, busy or threads], stdout=subprocess.PIPE)
    target.stdout.readline()
    totals, leaves, stops, holds, patched = [], [], [], "", ""
    for _ in range(runs):
        begun = time.monotonic()
        ours = subprocess.Popen([os.environ["STACKREEL"], "-v", "trace", "-p", str(target.pid), "-P", "f[0-9]*",
                                 "-o", f"{out}/trace", "--on-full=drop", "--buffer=16"],
                                stderr=subprocess.PIPE, text=True)
        said = ours.stderr.readline()
        totals.append((time.monotonic() - begun) * 1e3)
        begun = time.monotonic()
        ours.send_signal(signal.SIGINT)
        said += ours.stderr.read()
        leaves.append((time.monotonic() - begun) * 1e3)
        if ours.wait() != 0:
            target.kill()
            sys.exit(said)
        patched = re.search(r"tracing (\d+) functions", said)[1]
        holds, stop = re.search(r"held (\d+) times, for ([\d.]+) ms", said).groups()
        stops.append(float(stop))
        time.sleep(0.05)
    target.kill()
    target.wait()
    text = [f"{statistics.median(f):6.1f} ms ({min(f):.1f} to {max(f):.1f})" for f in (totals, leaves, stops)]
    print(f"{threads:>4} threads, {busy or 'all':>3} busy: {patched} functions in {text[0]}, left in {text[1]}, "
          f"longest of {holds} stops {text[2]}", flush=True)
END
