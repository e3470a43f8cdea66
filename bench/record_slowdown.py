#!/usr/bin/env python3
"""record_slowdown.py STACKREEL DEEP [RUNS]: what recording costs the program, by turns.

DEEP prints iterations per CPU second of its own threads; here is the median of RUNS (5) runs alone,
under `perf record --call-graph dwarf`, and under `stackreel record` ("none" is what the timer's
interrupts cost by themselves, "dwarf" the default), at 4,999 samples a second."""
import re
import statistics
import subprocess
import sys
import tempfile

stackreel, deep = sys.argv[1:3]
runs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
program = [deep, "3", "3", "2"]
with tempfile.TemporaryDirectory() as folder:
    ways = {"alone": program,
            "perf record --call-graph dwarf": ["perf", "record", "-q", "-e", "cpu-clock", "-F", "4999",
                                               "--call-graph", "dwarf", "-o", f"{folder}/p", "--",
                                               *program]}
    for how in ("none", "dwarf", "dwarf,8192", "dwarf,32768", "dwarf,65528"):
        ways[f"stackreel record --call-graph {how}"] = [
            stackreel, "record", "-q", "-e", "cpu-clock", "-F", "4999", "--call-graph", how,
            "-o", f"{folder}/s", "--", *program]
    rates = {name: [] for name in ways}
    for _ in range(runs):
        for name, command in ways.items():
            out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            rates[name] += [float(rate) for rate in re.findall(r"ipcs ([\d.]+)", out.stdout)]
alone = statistics.median(rates["alone"])
for name, values in rates.items():
    rate = statistics.median(values)
    print(f"{name:45} {rate:8.0f} iterations/CPU s  {100 * (alone / rate - 1):5.1f} % slower")
