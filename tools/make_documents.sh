#!/bin/sh
# usage: make_documents.sh STACKREEL OUT_DIR
# Writes the man pages and completion scripts that the program itself generates.
set -eu
stackreel=$1
out=$2
mkdir -p "$out/man1" "$out/bash" "$out/zsh" "$out/fish"
"$stackreel" help --man >"$out/man1/stackreel.1"
"$stackreel" help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p' | grep -vx help |
  while read -r command; do
    "$stackreel" help --man "$command" >"$out/man1/stackreel-$command.1"
  done
"$stackreel" completion bash >"$out/bash/stackreel"
"$stackreel" completion zsh >"$out/zsh/_stackreel"
"$stackreel" completion fish >"$out/fish/stackreel.fish"
