#!/usr/bin/env python3
"""Runs one command-line golden: a folder with

  cmd      a shell script; `stackreel` is on its PATH, the recordings lie in its folder
  stdout   what it must print (absent: nothing)
  stderr   the same for standard error
  exit     the exit code (absent: 0)

Usage: run_golden.py [--update] STACKREEL RECORDINGS CASE...
--update writes what came out instead of comparing it: look at the difference before you commit it.
"""

import difflib
import pathlib
import subprocess
import sys
import tempfile

TIMEOUT_S = 500  # of a sanitizer's build on a busy machine; what hangs, hangs for longer


def environment(stackreel, home):
    """As little as a command needs, so that no setting of this machine shows in a golden."""
    return {
        "PATH": f"{stackreel.parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "PERF_BUILDID_DIR": str(home / "no-cache"),
    }


def run(stackreel, recordings, case):
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        for entry in recordings.iterdir():
            (home / entry.name).symlink_to(entry.resolve())
        script = (case / "cmd").read_text()
        done = subprocess.run(
            ["/bin/sh", "-c", script],
            cwd=home, env=environment(stackreel, home), stdin=subprocess.DEVNULL,
            capture_output=True, timeout=TIMEOUT_S, check=False)
    return {
        "stdout": done.stdout.decode("utf-8", "backslashreplace"),
        "stderr": done.stderr.decode("utf-8", "backslashreplace"),
        "exit": f"{done.returncode}\n",
    }


def expected(case):
    default = {"stdout": "", "stderr": "", "exit": "0\n"}
    return {name: (case / name).read_text() if (case / name).exists() else text
            for name, text in default.items()}


def update(case, got):
    for name, text in got.items():
        if text in ("", "0\n"):
            (case / name).unlink(missing_ok=True)
        else:
            (case / name).write_text(text)


def main():
    args = sys.argv[1:]
    updating = args[:1] == ["--update"]
    if updating:
        args = args[1:]
    if len(args) < 3:
        sys.exit(__doc__)
    stackreel = pathlib.Path(args[0]).resolve()
    recordings = pathlib.Path(args[1]).resolve()
    failed = False
    for case in map(pathlib.Path, args[2:]):
        got = run(stackreel, recordings, case)
        if updating:
            update(case, got)
            continue
        for name, want in expected(case).items():
            if got[name] == want:
                continue
            failed = True
            sys.stdout.writelines(difflib.unified_diff(
                want.splitlines(True), got[name].splitlines(True),
                f"{case.name}/{name}", f"{case.name}/{name} (now)"))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
