#!/usr/bin/env bash
# build_kernel.sh lab FOLDER CONFIG: FOLDER/Image of the kernel with the series of kernel/, minimal for
# the lab, whose configuration CONFIG is; and its selftest, FOLDER/perf_ptr_auth.
# build_kernel.sh check FOLDER: what has no pointer authentication builds with the series too: arm64
# without it, and x86-64 with perf events.
# Both need linux-source-6.1. What the compiler warns of is an error.
set -euo pipefail
what=$1 folder=$(mkdir -p "$2" && cd "$2" && pwd)
here=$(cd "$(dirname "$(readlink -f "$0")")/../../kernel" && pwd)
archive=${KERNEL_SOURCE:-/usr/src/linux-source-6.1.tar.xz}
source=$folder/source
export KBUILD_BUILD_TIMESTAMP=@0 KBUILD_BUILD_USER=lab KBUILD_BUILD_HOST=lab

# The source with the series, anew when that has changed.
prepare() {
  local series patch
  series=$(cat "$here/series" "$here"/patches/* | sha256sum)
  [ "$(cat "$folder/series.applied" 2>/dev/null)" != "$series" ] || return 0
  rm -rf "$source"
  mkdir "$source"
  tar -xJf "$archive" -C "$source" --strip-components=1
  while read -r patch; do
    echo "applying $patch"
    patch -d "$source" -p1 --fuzz=0 --silent <"$here/patches/$patch"
  done <"$here/series"
  echo "$series" >"$folder/series.applied"
}

# make, by ccache where there is one, which only says what is wrong.
build() { # OUT TARGET...
  local out=$1 said compiler=${CROSS_COMPILE:-}gcc
  shift
  ! command -v ccache >/dev/null || compiler="ccache $compiler"
  said=$(make -s -C "$source" O="$out" CC="$compiler" -j"$(nproc)" "$@" 2>&1) || {
    echo "$said" >&2
    exit 1
  }
  if grep -E 'warning:|error:' <<<"$said" >&2; then exit 1; fi
}

configure() { # OUT BASE FRAGMENT...
  local out=$1 base=$2
  shift 2
  mkdir -p "$out"
  make -s -C "$source" O="$out" "$base" >/dev/null
  (cd "$source" && scripts/kconfig/merge_config.sh -O "$out" -m "$out/.config" "$@") >/dev/null
  make -s -C "$source" O="$out" olddefconfig 2>/dev/null
}

prepare
case $what in
  lab)
    export ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-
    configure "$folder/lab" tinyconfig "$(readlink -f "$3")"
    build "$folder/lab" Image
    cp "$folder/lab/arch/arm64/boot/Image" "$folder/Image"
    build "$folder/lab" headers
    aarch64-linux-gnu-gcc -O1 -Wall -Werror -static -mbranch-protection=pac-ret \
      -isystem "$folder/lab/usr/include" \
      "$source/tools/testing/selftests/arm64/pauth/perf_ptr_auth.c" -o "$folder/perf_ptr_auth"
    ;;
  check)
    printf '%s\n' '# CONFIG_ARM64_PTR_AUTH is not set' CONFIG_PERF_EVENTS=y CONFIG_PROC_FS=y \
      CONFIG_PRINTK=y >"$folder/without"
    printf '%s\n' CONFIG_64BIT=y CONFIG_PERF_EVENTS=y CONFIG_PROC_FS=y >"$folder/x86"
    (
      export ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu-
      configure "$folder/arm64" tinyconfig "$folder/without"
      ! grep -q ARCH_HAS_TASK_PTR_AUTH "$folder/arm64/.config"
      build "$folder/arm64" vmlinux
      echo "arm64 without pointer authentication builds"
    )
    (
      export ARCH=x86_64
      configure "$folder/x86_64" allnoconfig "$folder/x86"
      grep -q CONFIG_PERF_EVENTS=y "$folder/x86_64/.config"
      build "$folder/x86_64" vmlinux
      echo "x86-64 builds"
    )
    ;;
  *)
    echo "build_kernel.sh: lab or check, not '$what'" >&2
    exit 2
    ;;
esac
