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
# The whole machine, with programs that ran before: one of 64 bits, and one of 32 that is nothing but
# `b .` behind its ELF header and one program header.
printf '\177ELF\1\1\1\0\0\0\0\0\0\0\0\0\2\0\050\0\1\0\0\0\124\0\1\0\064\0\0\0\0\0\0\0' >/tmp/loop32
printf '\0\2\0\5\064\0\040\0\1\0\050\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\1\0\0\0\1\0' >>/tmp/loop32
printf '\130\0\0\0\130\0\0\0\5\0\0\0\0\0\1\0\376\377\377\352' >>/tmp/loop32
chmod +x /tmp/loop32
./deep.pacleaf 60 &
before=$!
/tmp/loop32 &
before="$before $!"
sleep 1
record sys.live -a -e cpu-clock -- ./deep.pacleaf 1
kill $before
for data in "$OUT"/data/*.data; do
  recording=$(basename "$data" .data)
  check "perf.$recording" perf script -i "$data" -F comm,tid,time,event,ip,sym,dso --no-inline
  [ -s "$OUT/log/perf.$recording.err" ] && { echo "perf complains of $recording"; failed=1; }
done
exit $failed
