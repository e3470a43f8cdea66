#!/usr/bin/env python3
"""Checks the documents: links lead somewhere, ARCHITECTURE.md is short and tells of every folder,
docs/counters.md explains every counter that the code names, docs/perf-differences.md every cause that
the comparison with perf accepts."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
MAX_ARCHITECTURE_LINES = 150
CAUSE = re.compile(r"^  ([a-z]+(?:-[a-z]+)+)  ", re.MULTILINE)
CAUSE_ROW = re.compile(r"^\| ([a-z]+(?:-[a-z]+)+) \| [^0-9]", re.MULTILINE)
COUNTER = re.compile(r'"((?:perfdata|session|unwind|cfi|dwarf|elf|symbolize|symfiles|analyze|record'
                     r'|anonymize|tracedata|trace|uftrace(?!\.data"))\.[a-z0-9_.]+)"')


def documents():
    yield from ROOT.glob("*.md")
    yield from (ROOT / "docs").rglob("*.md")
    yield from (ROOT / "kernel").glob("*.md")


def main():
    problems = []
    for path in sorted(documents()):
        for link in LINK.findall(path.read_text()):
            if "://" not in link and not (path.parent / link).exists():
                problems.append(f"{path.relative_to(ROOT)}: link to {link} leads nowhere")
    architecture = (ROOT / "ARCHITECTURE.md").read_text()
    lines = architecture.count("\n")
    if lines > MAX_ARCHITECTURE_LINES:
        problems.append(f"ARCHITECTURE.md: {lines} lines, at most {MAX_ARCHITECTURE_LINES}")
    for folder in sorted((ROOT / "src").iterdir()):
        if folder.is_dir() and f"`{folder.name}/`" not in architecture:
            problems.append(f"ARCHITECTURE.md: nothing is said of `{folder.name}/`")
    explained = (ROOT / "docs" / "counters.md").read_text()
    for path in sorted((ROOT / "src").rglob("*.cc")) + sorted((ROOT / "src").rglob("*.h")):
        if not path.name.endswith("_test.cc"):
            for counter in COUNTER.findall(path.read_text()):
                if f"`{counter}`" not in explained:
                    problems.append(f"docs/counters.md: nothing is said of {counter} ({path.name})")
    accepted = set(CAUSE.findall((ROOT / "tests" / "compare_perf_script.py").read_text()))
    told = set(CAUSE_ROW.findall((ROOT / "docs" / "perf-differences.md").read_text()))
    for cause in sorted(accepted ^ told):
        problems.append(f"docs/perf-differences.md and tests/compare_perf_script.py differ: {cause}")
    print("\n".join(problems) if problems else "docs: links lead somewhere, every folder is told of")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
