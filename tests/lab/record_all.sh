#!/bin/sh
# Runs in an arm64 guest (see ../../dev lab): Stackreel records programs with pointer authentication,
# live and for later, and perf reads what it wrote. $OUT is kept.
#   /share/stackreel /share/*_test /share/lib/   cross-built    /share/bin/   the programs
export LD_LIBRARY_PATH=/share/lib HOME=/tmp/home
mkdir -p "$HOME" "$OUT/data" "$OUT/log"
cd /share/bin || exit 1
failed=0
check() { # NAME COMMAND...
  name=$1
  shift
  "$@" >"$OUT/log/$name.out" 2>"$OUT/log/$name.err" || { echo "FAILED: $name"; failed=1; }
}
for test in os_test unwind_test; do check "$test" "/share/$test"; done
check doctor /share/stackreel doctor
record() { # NAME OPTIONS... -- COMMAND
  data=$1
  shift
  check "$data" /share/stackreel record -F 149 -o "$OUT/data/$data.data" "$@"
  tail -n 1 "$OUT/log/$data.err"
}
for program in deep.none deep.pac deep.pacleaf deep.std deep.bkey deep.static cxx.pacleaf \
  threads.pacleaf keys.pacleaf sig.pacleaf libmain.pacleaf; do
  recording=$(echo "$program" | sed 's/^libmain/lib/')
  record "$recording.live" -e cpu-clock:u -- "./$program" 1
  record "$recording.later" -e cpu-clock:u --unwind=later -- "./$program" 1
done
record sys.live -a -e cpu-clock -- ./deep.pacleaf 1
for data in "$OUT"/data/*.data; do
  recording=$(basename "$data" .data)
  check "perf.$recording" perf script -i "$data" -F comm,tid,time,event,ip,sym,dso --no-inline
  [ -s "$OUT/log/perf.$recording.err" ] && { echo "perf complains of $recording"; failed=1; }
done
exit $failed
