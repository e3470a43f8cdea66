#!/usr/bin/env python3
"""Plants secrets in a recording, anonymises it and looks for them byte by byte.

usage: planted_secrets.py STACKREEL

A program has marker texts in a register, on its stack, in its environment, arguments and name, in
the path of its binary and that of its home; it is recorded by perf with dumped stacks, registers
and data addresses. Which of them may be left is said below, level by level; what must be hidden
may neither stand in the output nor in what report, script and flamegraph make of it. Of a test that
finds nothing to hide nothing follows, so each secret must stand in the original. It exits 77, which
skips a test, where there is no perf or no compiler, or events may not be opened.
"""

import os
import shutil
import subprocess
import sys
import tempfile

PROGRAM = r"""
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
int main(void) {
  char text[256];
  unsigned long word, sum = 0;
  prctl(PR_SET_NAME, "XQcomm");
  strcpy(text, "XQstack");
  memcpy(&word, "XQregist", 8);
  volatile char* at = text;
  for (time_t end = time(0) + 2; time(0) < end;) {
    for (int i = 0; i < 5000; ++i) {
      asm volatile("" : "+r"(word));
      sum += word + at[i % 8];
    }
  }
  return (int)(sum & 1);
}
"""

# Each secret, and the first level that hides it.
LEVELS = ["addresses", "identity", "symbols"]
SECRETS = {"XQstack": 0, "XQregist": 0, "XQenvironment": 0, "XQcomm": 1, "XQargument": 1,
           "XQhome": 1, "XQmodule": 2}


def record(folder):
    """The path of the recording; None if there can be none."""
    perf, compiler = shutil.which("perf"), shutil.which("cc")
    if perf is None or compiler is None:
        return None
    home = os.path.join(folder, "home", "XQhome")
    os.makedirs(home)
    source, binary = os.path.join(folder, "secrets.c"), os.path.join(home, "XQmodule")
    with open(source, "w", encoding="utf-8") as out:
        out.write(PROGRAM)
    subprocess.run([compiler, "-O1", "-g", source, "-o", binary], check=True)
    data = os.path.join(folder, "secret.data")
    done = subprocess.run(
        [perf, "record", "-q", "-e", "cpu-clock", "-F", "499", "-d", "--call-graph", "dwarf,16384",
         "-o", data, "--", binary, "XQargument"],
        env={"PATH": os.environ["PATH"], "SECRET": "XQenvironment"}, capture_output=True,
        check=False)
    return data if done.returncode in (0, 1) and os.path.exists(data) else None


def count(path):
    with open(path, "rb") as file:
        content = file.read()
    return {secret: content.count(secret.encode()) for secret in SECRETS}


def views(stackreel, made, folder):
    """What is made of the anonymised recording, as files."""
    for command in (["report"], ["report", "--format=json"], ["script"], ["script", "--format=json"],
                    ["flamegraph"], ["flamegraph", "--format=folded"]):
        path = os.path.join(folder, "".join(command))
        subprocess.run([stackreel, *command, "-i", made, "-o", path], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        yield path


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    stackreel = sys.argv[1]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        data = record(folder)
        if data is None:
            print("no recording can be made: nothing is planted")
            return 77
        planted = count(data)
        print("planted: " + ", ".join(f"{name} {times}" for name, times in planted.items()))
        # How much of the stack's upper end is dumped is the kernel's to say.
        failed += sum(times == 0 for name, times in planted.items() if name != "XQenvironment")
        for number, level in enumerate(LEVELS):
            made = os.path.join(folder, level)
            subprocess.run([stackreel, "anonymize", data, "-o", made, "--" + level], check=True)
            hidden = [name for name, least in SECRETS.items() if number >= least]
            for path in [made, *views(stackreel, made, folder)]:
                left = {name: times for name, times in count(path).items()
                        if name in hidden and times != 0}
                failed += len(left)
                print(f"--{level}, {os.path.basename(path)}: {os.path.getsize(path)} bytes, "
                      f"{len(hidden)} secrets to hide, left: {left or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
