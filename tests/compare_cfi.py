#!/usr/bin/env python3
"""Holds every CFI row that we read from ELF files against `readelf -wF`.

usage: compare_cfi.py CFI_ROWS FILE...

CFI_ROWS is the program cfi_rows. Prints functions and rows compared per file; fails if any differ.
Left out are what linkers deleted (start 0 or 1, empty ranges) and columns of vector registers.
"""

import re
import subprocess
import sys

X86_64 = ("rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip").split()
I386 = "eax ecx edx ebx esp ebp esi edi eip".split()
AARCH64 = [f"x{n}" for n in range(31)] + ["sp"]
NAMES_BY_RA = {16: X86_64, 8: I386, 30: AARCH64}
FDE = re.compile(r"^[0-9a-f]{8,16} .*FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)$")
CIE = re.compile(r"^([0-9a-f]{8,16}) .*CIE .* ra=(\d+)")
MAX_REGISTERS = 35


class Function:
    """What one FDE says: rows as {start: (cfa, {register: rule})}, the last of equal starts."""

    def __init__(self, start, end, cie):
        self.start, self.end, self.cie = start, end, cie
        self.rows = {}


def readelf_functions(path):
    """The functions as readelf shows them, in its order."""
    output = subprocess.Popen(["readelf", "-wFN", path], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    cies, functions, current, columns, names = {}, [], None, [], X86_64
    ra = 16
    for line in output.stdout:
        line = line.rstrip()
        if not line:
            continue
        words = re.sub(r" \(\w+\)", "", line).split()  # "r3 (rbx)"
        if "ZERO terminator" in line:
            current = None
        elif match := CIE.match(line):
            current = Function(0, 0, None)
            ra = int(match[2])
            names = NAMES_BY_RA.get(ra, [])
            cies[match[1].lstrip("0")] = current
            columns = []
        elif match := FDE.match(line):
            cie = cies.get(match[1].lstrip("0"))
            current = Function(int(match[2], 16), int(match[3], 16), cie)
            functions.append(current)
            columns = []
        elif words[0] == "LOC":
            columns = [ra if w == "ra" else number_of(w, names) for w in words[2:]]
        elif current is not None and is_hex(words[0]) and len(words) > 1:
            row = {c: rule_of(w, names) for c, w in zip(columns, words[2:])
                   if c is not None and w != "u"}
            current.rows[int(words[0], 16)] = (cfa_of(words[1], names), row)
        elif line.startswith("Contents of"):
            cies = {}
    output.wait()
    for function in functions:
        if not function.rows and function.cie and function.cie.rows:
            function.rows = {function.start: next(iter(function.cie.rows.values()))}
    return functions


def is_hex(word):
    return re.fullmatch(r"[0-9a-f]{8,16}", word) is not None


def number_of(name, names):
    if name in names:
        return names.index(name)
    match = re.fullmatch(r"r(\d+)", name)
    return int(match[1]) if match and int(match[1]) < MAX_REGISTERS else None


def cfa_of(word, names):
    match = re.fullmatch(r"([a-z0-9]+)([+-]\d+)", word)
    return f"{number_of(match[1], names)}{match[2]}" if match else word


def rule_of(word, names):
    if word in ("u", "s", "exp", "vexp") or re.fullmatch(r"[cv][+-]\d+", word):
        return word
    return f"r{number_of(word, names)}"


def our_functions(program, path):
    functions = []
    output = subprocess.Popen([program, path], stdout=subprocess.PIPE, text=True)
    for line in output.stdout:
        kind, *words = line.split()
        if kind == "F":
            functions.append(Function(int(words[0], 16), int(words[1], 16), None))
        elif kind == "R":
            rules = dict(w.split("=") for w in words[2:])
            row = {int(r): rule for r, rule in rules.items() if rule != "u"}
            functions[-1].rows[int(words[0], 16)] = (words[1], row)
        else:
            functions[-1].rows[-1] = line.strip()  # is in no row of readelf's
    if output.wait() != 0:
        sys.exit(f"{program} {path} failed")
    return functions


def clip(function):
    """Rows that cover something, as neighbours that are equal are one row."""
    rows, previous = [], None
    for start in sorted(function.rows):
        row = function.rows[start]
        if start < function.end and row != previous:
            rows.append((start, row))
            previous = row
    return rows


def compare(program, path):
    ours = our_functions(program, path)
    theirs = [f for f in readelf_functions(path) if f.start > 1 and f.end > f.start]
    key = lambda f: (f.start, f.end)
    ours.sort(key=key)
    theirs.sort(key=key)
    differences = []
    rows = 0
    if [key(f) for f in ours] != [key(f) for f in theirs]:
        only = set(map(key, ours)) ^ set(map(key, theirs))
        differences.append(f"functions differ: {len(ours)} and {len(theirs)}: {sorted(only)[:5]}")
    by_key = {}
    for function in ours:
        by_key.setdefault(key(function), []).append(function)
    for function in theirs:
        mine = by_key.get(key(function), [])
        want = clip(function)
        rows += len(want)
        if want not in [clip(f) for f in mine]:
            differences.append(f"{function.start:x}: {[clip(f) for f in mine]}, readelf: {want}")
    print(f"{path}: {len(theirs)} functions, {rows} rows, {len(differences)} differences")
    for difference in differences[:10]:
        print("  " + difference[:600])
    return not differences


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    good = [compare(sys.argv[1], path) for path in sys.argv[2:]]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
