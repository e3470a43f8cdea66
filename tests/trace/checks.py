"""What the tests of tracing share: checks that are counted, programs that are built, and when a test
is skipped."""
import re
import shutil
import subprocess
import sys

SKIPPED = 77  # the exit code
failures = []


def check(ok, what):
    print(("ok      " if ok else "FAILED  ") + what, flush=True)
    if not ok:
        failures.append(what)


def result():
    """The exit code, after all checks."""
    print(f"{len(failures)} failures")
    return 1 if failures else 0


def build(source, program, *options):
    """Ends the test where there is no compiler."""
    compiler = shutil.which("gcc") or shutil.which("clang-19")
    if not compiler:
        print("no compiler here")
        sys.exit(SKIPPED)
    subprocess.run([compiler, *options, source, "-o", program], check=True)


def is_refused(stderr):
    """Whether nothing may be traced here, by what `stackreel trace` said; tells of it."""
    refused = re.search("(command cannot|may not) be traced", stderr)
    if refused:
        print(stderr)
    return bool(refused)
