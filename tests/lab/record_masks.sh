#!/bin/sh
# Runs in an arm64 guest (see ../../dev lab): Stackreel records programs whose keys of pointer
# authentication change, by each way that masks can come by; what the programs say of themselves lies
# beside, for ../compare_masks.py to hold against it. $OUT is kept.
#   /share/stackreel /share/lib/   cross-built    /share/bin/masks, masks.plain   of masks.c
export LD_LIBRARY_PATH=/share/lib HOME=/tmp/home
mkdir -p "$HOME" "$OUT/masks"
cd /share/bin || exit 1
failed=0
check() { # NAME COMMAND...
  name=$1
  shift
  "$@" >"$OUT/masks/$name.out" 2>"$OUT/masks/$name.err" && return
  echo "FAILED: $name: $(tail -n 1 "$OUT/masks/$name.err")"
  failed=1
}
check doctor /share/stackreel doctor --json
cat /proc/self/ptr_auth >"$OUT/masks/proc_file" 2>/dev/null
record() { # NAME OPTIONS...
  recording=$1
  shift
  said="$OUT/masks/$recording.said"
  rm -f /tmp/go /tmp/stop
  ./masks before 0.3 >>"$said" &
  before=$!
  while ! grep -qs CHAIN "$said"; do usleep 50000; done
  # Compressed by none: the comparison reads the records themselves.
  check "$recording" /share/stackreel -v record -a -e cpu-clock:u -F 199 -k monotonic --no-compress "$@" \
    -o "$OUT/masks/$recording.data" -- sh -c "
      touch /tmp/go
      ./masks run 0.3 ./masks.plain >>'$said' || touch '$OUT/masks/$recording.failed'
      usleep 300000"
  touch /tmp/go /tmp/stop # go: where nothing was recorded
  wait $before || echo "FAILED: masks before"
  [ ! -e "$OUT/masks/$recording.failed" ] || { echo "FAILED: masks run"; failed=1; }
  grep -E '^  masks:|^stackreel: ' "$OUT/masks/$recording.err"
  check "$recording.script" /share/stackreel script --no-inline --format=json --show-masks \
    -i "$OUT/masks/$recording.data"
  check "$recording.perf" perf script -i "$OUT/masks/$recording.data" -F comm,tid,time,event,ip,sym --no-inline
}
record best
record later --unwind=later
record samples --pac-masks=samples
record cpu --pac-masks=cpu
exit $failed
