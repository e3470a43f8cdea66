#!/usr/bin/env bash
# Ratios against peers, each pair in one run; then the micro-benchmarks. See bench/README.md.
# usage: bench/run.sh [analyze] [anonymize] [record] [trace] [calls] [micro]   (all six unless said)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
stackreel=$PWD/build/release/src/cli/stackreel
out=$PWD/out/bench
runs=${RUNS:-5}
mkdir -p "$out"

make_programs() {
  [ -x "$out/deep" ] || g++ -O2 -g -fomit-frame-pointer -pthread bench/programs/deep.cc -o "$out/deep"
  [ -x "$out/deep_fp" ] ||
    g++ -O2 -g -fno-omit-frame-pointer -pthread bench/programs/deep.cc -o "$out/deep_fp"
  [ -f "$out/nomask.so" ] || gcc -O2 -shared -fPIC bench/programs/nomask.c -o "$out/nomask.so"
}

perf_recording() {  # NAME STACK_BYTES FREQUENCY COMMAND...
  local file=$out/$1 bytes=$2 frequency=$3
  shift 3
  [ -f "$file" ] || perf record -q -e cpu-clock -F "$frequency" --call-graph "dwarf,$bytes" \
    -o "$file" -- "$@" >/dev/null
}

compile() {  # a large C++ file with clang
  echo clang++-19 -std=c++23 -O2 -Isrc -c src/cli/option_tree.cc -o /dev/null
}

without_inlines() {  # ratios for one recording
  local ours="$stackreel script --threads=1 --no-inline -F ip,sym -i $out/$1"
  local theirs="perf script --no-inline -F ip,sym -i $out/$1"
  bench/ratio.py --runs "$runs" --name "script $1, stock perf" "$ours" "$theirs"
  bench/ratio.py --runs "$runs" --name "script $1, perf without signal masks" "$ours" \
    "env LD_PRELOAD=$out/nomask.so $theirs"
}

with_inlines() {  # NAME RUNS: perf asks addr2line once for each distinct address
  bench/ratio.py --runs "$2" --name "script $1 with inlined functions" \
    "$stackreel script --threads=1 -F ip,sym -i $out/$1" \
    "timeout 900 perf script -F ip,sym -i $out/$1"
}

# Seconds of wall time on one thread and on two, and the peak memory of each.
threads() {
  local n
  for n in 1 2; do
    /usr/bin/env python3 - "$n" "$stackreel" "$@" <<'END'
import os, subprocess, sys, time
threads, program, *arguments = sys.argv[1:]
start = time.monotonic()
child = subprocess.Popen([program, arguments[0], f"--threads={threads}", *arguments[1:]],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, _, usage = os.wait4(child.pid, 0)
print(f"{' '.join(arguments)}: {threads} thread(s): {time.monotonic() - start:.2f} s, "
      f"{usage.ru_utime + usage.ru_stime:.2f} s CPU, {usage.ru_maxrss // 1024} MB")
END
  done
}

analyze() {
  perf_recording short8.data 8192 4999 "$out/deep" 5 1 1
  perf_recording long8.data 8192 4999 "$out/deep" 20 1 1
  perf_recording short32.data 32768 4999 "$out/deep" 2 3 1
  perf_recording long32.data 32768 4999 "$out/deep" 6 3 1
  # shellcheck disable=SC2046
  perf_recording clang.data 8192 4999 $(compile)
  local file
  for file in short8 long8 short32 long32 clang; do without_inlines "$file.data"; done
  for file in short8 short32; do with_inlines "$file.data" "$runs"; done
  # Few samples, of a program that has many addresses.
  perf_recording self.data 8192 9999 "$stackreel" script --threads=1 -i "$out/clang.data"
  with_inlines self.data 1
  for file in long8 clang; do
    threads script -F ip,sym -i "$out/$file.data"
    threads report -i "$out/$file.data"
  done
  # More than 1 GB; removed again.
  perf_recording large.data 65528 4999 "$out/deep" 8 3 1
  ls -l "$out/large.data" | awk '{print $5 " bytes in large.data"}'
  threads script -F ip,sym -i "$out/large.data"
  threads report -i "$out/large.data"
  rm -f "$out/large.data"
}

# Against perf inject, which passes the same file through; with stacks against our script.
anonymize() {
  local fp="perf record -q -e cpu-clock --call-graph fp" plain="perf record -q -e cpu-clock"
  [ -f "$out/chains.data" ] ||
    $fp -F 15000 -o "$out/chains.data" -- "$out/deep_fp" 14 3 2 >/dev/null
  [ -f "$out/short_chains.data" ] ||
    $fp -F 9999 -o "$out/short_chains.data" -- "$out/deep_fp" 14 1 2 >/dev/null
  [ -f "$out/plain.data" ] ||
    $plain -F 15000 -o "$out/plain.data" -- "$out/deep_fp" 14 1 2 >/dev/null
  [ -f "$out/system.data" ] ||
    $plain -a -g -F 4999 -o "$out/system.data" -- "$out/deep_fp" 14 1 2 >/dev/null ||
    rm -f "$out/system.data"  # not everybody may
  local file how
  for file in chains short_chains plain system; do
    [ -f "$out/$file.data" ] || continue
    for how in "--no-verify" ""; do
      bench/ratio.py --runs "$runs" --name "anonymize $how $file.data, perf inject" \
        "$stackreel anonymize $how $out/$file.data -o $out/anonymized" \
        "perf inject -i $out/$file.data -o $out/injected"
    done
  done
  perf_recording long8.data 8192 4999 "$out/deep" 20 1 1
  for how in "--no-verify" ""; do
    bench/ratio.py --runs "$runs" --name "anonymize $how long8.data, script" \
      "$stackreel anonymize $how $out/long8.data -o $out/anonymized" \
      "$stackreel script -F ip,sym -i $out/long8.data"
  done
  rm -f "$out/anonymized" "$out/injected" "$out/injected.old"
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

# Shows a synthetic trace of 12 M records, against uftrace with the same, converted.
trace() {
  local threads
  for threads in 1 4; do
    local ours=$out/trace$threads theirs=$out/trace$threads.uftrace
    build/release/bench/make_trace "$ours" 12000000 "$threads"
    rm -rf "$theirs"
    "$stackreel" convert -q --to=uftrace -i "$ours" -o "$theirs"
    du -sb "$ours" "$theirs"
    bench/ratio.py --runs "$runs" --name "report, 12 M records, $threads threads" \
      "$stackreel report -i $ours" "uftrace report --no-pager -d $theirs"
    bench/ratio.py --runs "$runs" --name "replay, 12 M records, $threads threads" \
      "$stackreel replay -i $ours" "uftrace replay --no-pager -d $theirs"
    bench/ratio.py --runs "$runs" --name "graph, 12 M records, $threads threads" \
      "$stackreel graph -i $ours" "uftrace graph --no-pager -d $theirs"
    bench/ratio.py --runs "$runs" --name "dump --format=chrome, 12 M records, $threads threads" \
      "$stackreel dump -i $ours --format=chrome" "uftrace dump --no-pager --chrome -d $theirs"
    rm -rf "$ours" "$theirs"
  done
}

# The cost of a traced call, against uftrace.
calls() { RUNS=$runs bench/trace.sh; }

micro() {
  local program
  for program in build/release/bench/bench_*; do
    if [ -f "$program" ] && [ -x "$program" ]; then "$program"; fi
  done
}

make_programs
if [ $# -eq 0 ]; then set -- analyze anonymize record trace calls micro; fi
for part in "$@"; do "$part"; done
