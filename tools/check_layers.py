#!/usr/bin/env python3
"""Holds src/ to layers.txt: who may include whom, and who may include system headers."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SYSTEM = re.compile(
    r"^(unistd\.h|fcntl\.h|sys/.*|linux/.*|pthread\.h|dlfcn\.h|signal\.h|csignal|fstream|filesystem"
    r"|thread|mutex|condition_variable|iostream)$")
# What tests may use besides: they make files and threads to test with.
TEST_SUFFIX = "_test.cc"


def read_layers():
    rank_of, allowed, system_from = {}, set(), None
    rank = 0
    for line in (ROOT / "layers.txt").read_text().splitlines():
        words = line.split("#")[0].split()
        if not words:
            continue
        if words[0] == "rank":
            for folder in words[1:]:
                rank_of[folder] = rank
            rank += 1
        elif words[0] == "system":
            system_from = rank
        elif words[0] == "allow" and len(words) == 4 and words[2] == "->":
            allowed.add((words[1], words[3]))
        else:
            sys.exit(f"layers.txt: not understood: {line}")
    return rank_of, allowed, system_from


def check(path, rank_of, allowed, system_from):
    folder = path.relative_to(ROOT / "src").parts[0]
    if folder not in rank_of:
        return [f"{path}: folder {folder} is not in layers.txt"]
    problems = []
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, header = match.groups()
        where = f"{path.relative_to(ROOT)}:{number}"
        if quote == '"':
            target = header.split("/")[0]
            if target == folder or path.name.endswith(TEST_SUFFIX) and target == "os":
                continue
            if target not in rank_of:
                problems.append(f'{where}: "{header}" is in no folder of layers.txt')
            elif rank_of[target] > rank_of[folder] or (
                    rank_of[target] == rank_of[folder] and (folder, target) not in allowed):
                problems.append(f"{where}: {folder} may not include {target}")
        elif rank_of[folder] < system_from and SYSTEM.match(header):
            if not path.name.endswith(TEST_SUFFIX):
                problems.append(f"{where}: {folder} is below the system line, <{header}> is above")
    return problems


def main():
    layers = read_layers()
    problems = []
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in (".h", ".cc"):
            problems += check(path, *layers)
    print("\n".join(problems) if problems else "layers: every include is allowed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
