#!/usr/bin/env bash
# run_masks.sh LAB GUEST SHARE STACKREEL: boots an arm64 guest, runs record_masks.sh in it and holds what
# was recorded against what the programs said. LAB is lab.sh, GUEST what its setup made, SHARE a folder
# to fill, STACKREEL the cross-built program. With LAB_IMAGE it boots that kernel.
set -euo pipefail
lab=$1 guest=$2 share=$3 stackreel=$4
here=$(dirname "$(readlink -f "$0")")

rm -rf "$share/bin" "$share/lib"
mkdir -p "$share/bin"
compile() { # NAME PROTECTION
  aarch64-linux-gnu-gcc -O2 -g -Wall -Wextra -Werror -fasynchronous-unwind-tables \
    -fomit-frame-pointer -pthread "-mbranch-protection=$2" "$here/masks.c" -o "$share/bin/$1"
}
compile masks standard
compile masks.plain none
cp "$stackreel" "$here/record_masks.sh" "$share"
aarch64-linux-gnu-strip -g "$share/stackreel"
"$here/copy_libraries.sh" "$share/stackreel" "$share/lib"
LAB_TIMEOUT=${LAB_TIMEOUT:-500} "$lab" run "$guest" "$share" 'sh record_masks.sh'
"$here/../compare_masks.py" "$share/out/masks"
