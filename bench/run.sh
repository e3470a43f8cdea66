#!/usr/bin/env bash
# Ratios against peers, each pair in one run; then the micro-benchmarks. See bench/README.md.
# usage: bench/run.sh [analyze] [record] [micro]     (all three unless said)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
stackreel=$PWD/build/release/src/cli/stackreel
out=$PWD/out/bench
runs=${RUNS:-5}
mkdir -p "$out"

make_programs() {
  [ -x "$out/deep" ] || g++ -O2 -g -fomit-frame-pointer -pthread bench/programs/deep.cc -o "$out/deep"
  [ -f "$out/nomask.so" ] || gcc -O2 -shared -fPIC bench/programs/nomask.c -o "$out/nomask.so"
}

perf_recording() {  # NAME STACK_BYTES LAYERS SECONDS
  [ -f "$out/$1" ] || perf record -q -e cpu-clock -F 4999 --call-graph "dwarf,$2" -o "$out/$1" -- \
    "$out/deep" "$4" "$3" 1 >/dev/null
}

analyze() {
  perf_recording deep8.data 8192 1 10
  perf_recording deep32.data 32768 3 5
  perf_recording short.data 8192 1 0.5
  local file
  for file in deep8.data deep32.data; do
    local ours="$stackreel script --threads=1 --no-inline -F ip,sym -i $out/$file"
    local theirs="perf script --no-inline -F ip,sym -i $out/$file"
    bench/ratio.py --runs "$runs" --name "script $file, stock perf" "$ours" "$theirs"
    bench/ratio.py --runs "$runs" --name "script $file, perf without signal masks" "$ours" \
      "env LD_PRELOAD=$out/nomask.so $theirs"
  done
  bench/ratio.py --runs 1 --name "script with inlined functions" \
    "$stackreel script --threads=1 -F ip,sym -i $out/short.data" \
    "timeout 900 perf script -F ip,sym -i $out/short.data"
}

record() {
  local bytes
  for bytes in 32768 65528; do
    echo "== record -F 4999, 2 threads, $bytes bytes of stack"
    echo "alone:"
    "$out/deep" 5 3 2
    echo "perf record --call-graph dwarf,$bytes:"
    perf record -e cpu-clock -F 4999 --call-graph "dwarf,$bytes" -o "$out/perf.data" -- \
      "$out/deep" 5 3 2 2>&1 | grep -E 'iters|LOST|lost|Captured' || true
    ls -l "$out/perf.data" | awk '{print $5 " bytes"}'
    echo "stackreel record --call-graph=dwarf,$bytes:"
    "$stackreel" record -e cpu-clock -F 4999 --call-graph "dwarf,$bytes" -o "$out/ours.data" -- \
      "$out/deep" 5 3 2
    ls -l "$out/ours.data" | awk '{print $5 " bytes"}'
  done
}

micro() {
  local program
  for program in build/release/bench/bench_*; do
    if [ -f "$program" ] && [ -x "$program" ]; then "$program"; fi
  done
}

make_programs
if [ $# -eq 0 ]; then set -- analyze record micro; fi
for part in "$@"; do "$part"; done
