#!/usr/bin/env python3
"""Plants secrets in recordings, anonymises them and looks for them byte by byte.

usage: planted_secrets.py STACKREEL

A program has marker texts in a register, on its stack, in an argument of a system call, in its
environment, arguments and name, in the path of its binary and that of its home, in the names of its
machine, of its control group and of its memory; an event has one in its name. It is recorded by
perf with dumped stacks, registers, data addresses and a tracepoint's raw data, and by STACKREEL,
which unwinds at once. Which secrets may be left is said below, level by level; what must be hidden
may neither stand in the output nor in what report, script, flamegraph and dump make of it. Of a
test that finds nothing to hide nothing follows, so each secret must stand in the recording by perf,
unless it is said why it could not be planted. It exits 77, which skips a test, where there is no
perf or no compiler, or events may not be opened.
"""

import os
import shutil
import subprocess
import sys
import tempfile

PROGRAM = r"""
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  char text[256];
  unsigned long word, raw, sum = 0;
  prctl(PR_SET_NAME, "XQcomm");
  strcpy(text, "XQstack");
  memcpy(&word, "XQregist", 8);
  memcpy(&raw, "XQrawdat", 8);
  int memory = (int)syscall(SYS_memfd_create, "XQmemory", 0);
  mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, memory, 0);
  volatile char* at = text;
  for (time_t end = time(0) + 2; time(0) < end;) {
    syscall(SYS_prctl, -1, raw, 0, 0, 0);
    for (int i = 0; i < 50000; ++i) {
      asm volatile("" : "+r"(word));
      sum += word + at[i % 8];
    }
  }
  return (int)(sum & 1);
}
"""

# Each secret, and the first level that hides it.
LEVELS = ["addresses", "identity", "symbols"]
SECRETS = {"XQstack": 0, "XQregist": 0, "XQenvironment": 0, "XQrawdat": 0, "XQcomm": 1,
           "XQargument": 1, "XQhome": 1, "XQhost": 1, "XQgroup": 1, "XQevent": 1, "XQmodule": 2,
           "XQmemory": 2}
# Of a tracepoint's payload; it has no call chain, so that no register and no stack has it too.
TRACEPOINT = "syscalls:sys_enter_prctl"


class ControlGroup:
    """One with a name to hide, while it is entered; None if there can be none."""

    def __init__(self):
        self.path = None

    def __enter__(self):
        with open("/proc/self/mounts", encoding="utf-8") as mounts:
            roots = [line.split()[1] for line in mounts if line.split()[2] == "cgroup2"]
        try:
            path = os.path.join(roots[0], f"XQgroup{os.getpid()}")
            os.mkdir(path)
            self.path = path
        except (IndexError, OSError):
            pass
        return self

    def __exit__(self, *_):
        if self.path is not None:
            os.rmdir(self.path)

    def join(self):
        """Of the process that calls it."""
        if self.path is not None:
            with open(os.path.join(self.path, "cgroup.procs"), "w", encoding="ascii") as procs:
                procs.write("0")


def works(command):
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def compile_program(folder):
    home = os.path.join(folder, "home", "XQhome")
    os.makedirs(home)
    source, binary = os.path.join(folder, "secrets.c"), os.path.join(home, "XQmodule")
    with open(source, "w", encoding="utf-8") as out:
        out.write(PROGRAM)
    subprocess.run(["cc", "-O1", "-g", source, "-o", binary], check=True)
    return binary


def record(folder, stackreel, group):
    """The paths of the recordings; the secrets that could not be planted, each with the reason."""
    binary = compile_program(folder)
    missing = {}
    perf = ["perf", "record", "-q", "-d", "-e", "cpu-clock/name=XQevent,freq=499/",
            "--call-graph", "dwarf,16384"]
    ours = [stackreel, "record", "-q", "--no-compress", "-e", "cpu-clock", "-F", "499"]
    attempt = ["perf", "record", "-q", "-o", "/dev/null", "-e"]
    if works([*attempt, TRACEPOINT, "true"]):
        perf += ["-e", TRACEPOINT + "/call-graph=no/"]
    else:
        missing["XQrawdat"] = f"{TRACEPOINT} cannot be recorded"
    if group.path is None:
        missing["XQgroup"] = "no control group can be made"
    elif works([*attempt, "cpu-clock", "--all-cgroups", "true"]):
        perf.append("--all-cgroups")
        ours.append("--all-cgroups")
    else:
        missing["XQgroup"] = "control groups cannot be recorded"
    # A machine's name of its own, for it and its children.
    host = ["unshare", "--uts", "sh", "-c",
            'echo XQhost > /proc/sys/kernel/hostname && exec "$@"', "sh"]
    if not works([*host, "true"]):
        host = []
        missing["XQhost"] = "the machine's name cannot be another"
    made = []
    for name, command in (("perf", perf), ("stackreel", ours)):
        data = os.path.join(folder, name + ".data")
        done = subprocess.run(
            [*host, *command, "-o", data, "--", binary, "XQargument"],
            env={"PATH": os.environ["PATH"], "HOME": folder, "SECRET": "XQenvironment"},
            preexec_fn=group.join, capture_output=True, check=False)
        if done.returncode not in (0, 1) or not os.path.exists(data):
            print(f"{name} does not record: {done.stderr.decode(errors='replace').strip()[:300]}")
            return None, missing
        made.append(data)
    return made, missing


def count(path):
    with open(path, "rb") as file:
        content = file.read()
    return {secret: content.count(secret.encode()) for secret in SECRETS}


def views(stackreel, made, folder):
    """What is made of the anonymised recording, as files."""
    for number, command in enumerate((
            ["report"], ["report", "--format=json"], ["script"], ["script", "--format=json"],
            ["script", "-F", "comm,cgroup,event,ip,sym,dso", "--show-task-events",
             "--show-mmap-events", "--show-cgroup-events"],
            ["flamegraph", "-o", "-"], ["flamegraph", "--format=folded"],
            ["dump"], ["dump", "--header"])):
        path = os.path.join(folder, f"{number}.{command[0]}")
        with open(path, "wb") as out:
            subprocess.run([stackreel, *command, "-i", made], check=True, stdout=out,
                           stderr=subprocess.DEVNULL)
        yield path


def look(stackreel, data, folder):
    """How many secrets are left that must be hidden, over all levels."""
    failed = 0
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
    return failed


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if shutil.which("perf") is None or shutil.which("cc") is None:
        print("no perf or no compiler: nothing is planted")
        return 77
    stackreel = os.path.abspath(sys.argv[1])
    failed = 0
    with tempfile.TemporaryDirectory() as folder, ControlGroup() as group:
        recordings, missing = record(folder, stackreel, group)
        if recordings is None:
            print("no recording can be made: nothing is planted")
            return 77
        for name, why in missing.items():
            print(f"not planted: {name}: {why}")
        for data in recordings:
            planted = count(data)
            print(f"planted in {os.path.basename(data)}: "
                  + ", ".join(f"{name} {times}" for name, times in planted.items()))
            # How much of the stack's upper end is dumped is the kernel's to say.
            if data == recordings[0]:
                failed += sum(times == 0 for name, times in planted.items()
                              if name != "XQenvironment" and name not in missing)
            failed += look(stackreel, data, folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
