#!/usr/bin/env bash
# copy_libraries.sh FILE FOLDER: into FOLDER the libraries that a cross-built FILE needs and the lab's
# guest does not have, and those that they need.
set -euo pipefail
folder=$2

copy() { # FILE
  local library path
  for library in $(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    case $library in libc.so.*|libm.so.*|libgcc_s.so.*|libstdc++.so.*|ld-linux-*) continue ;; esac
    [ ! -e "$folder/$library" ] || continue
    path=$(aarch64-linux-gnu-gcc -print-file-name="$library")
    [ -e "$path" ] || path=/usr/lib/aarch64-linux-gnu/$library
    cp -L "$path" "$folder"
    copy "$path"
  done
}

mkdir -p "$folder"
copy "$1"
