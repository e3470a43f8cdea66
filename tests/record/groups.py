#!/usr/bin/env python3
"""Recordings of event groups: groups.py STACKREEL

Groups with and without leader sampling are recorded, opened as groups, described in the file, and
read with the same samples and counts by us and, where it is installed, by perf. What is no group
is refused."""
import os
import shutil
import subprocess
import sys
import tempfile

STACKREEL = os.path.abspath(sys.argv[1])
PERF = shutil.which("perf")
PROGRAM = [sys.executable, "-c", "x = [bytearray(1 << 20) for i in range(100)]; sum(range(3000000))"]
FIELDS = "comm,tid,time,event,period"
failures = []


def check(ok, what, shown=""):
    print(("ok      " if ok else "FAILED  ") + what, flush=True)
    if not ok:
        print(shown, flush=True)
        failures.append(what)


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=120, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def record(path, *args):
    return run(STACKREEL, "record", "--no-buildid-cache", "-o", path, *args, "--", *PROGRAM)


def fields_of(text):
    """Each line's words: perf pads them otherwise where events have names of other lengths."""
    return [line.split() for line in text.splitlines()]


def lines_of(path):
    code, out, err = run(STACKREEL, "script", "-F", FIELDS, "-i", path)
    check(code == 0, "script reads it", err)
    return fields_of(out)


def check_perf(path, lines, groups):
    if not PERF:
        return
    code, out, err = run(PERF, "script", "-F", FIELDS, "-i", path)
    theirs = fields_of(out)
    differing = [pair for pair in zip(lines, theirs) if pair[0] != pair[1]]
    check(code == 0 and lines == theirs, "perf script has the same samples and counts",
          f"{len(lines)} lines, of perf {len(theirs)}; {differing[:3]} {err}")
    code, out, err = run(PERF, "evlist", "-g", "-i", path)
    found = [line for line in out.splitlines() if not line.startswith(("#", "dummy"))]
    check(found == groups, "perf evlist -g has the groups", f"{out} {err}")


def check_header(path, groups):
    code, out, _ = run(STACKREEL, "report", "--header-only", "-i", path)
    found = [line.removeprefix("# group: ") for line in out.splitlines() if "# group: " in line]
    wanted = [group for group in groups if "{" in group]
    check(code == 0 and found == wanted, "the header has the groups", str(found))


def check_counts(path, lines):
    """Leader sampling: the counts that samples are given add up to the last that was read."""
    code, out, err = run(STACKREEL, "dump", "-i", path)
    check(code == 0 and " value " in out, "dump shows the counts read", err)
    last = {}
    for line in out.splitlines():
        words = line.split()
        if "value" in words and "id" in words:
            last[words[words.index("id") + 1]] = int(words[words.index("value") + 1])
    for event in ("cpu-clock", "page-faults"):
        total = sum(int(line[3]) for line in lines if line[4] == event + ":")
        check(total > 0 and total in added(last), f"counts of {event} add up", f"{total} {last}")


def added(last):
    """Sums of any of the last counts: of an event there is one a CPU."""
    sums = {0}
    for count in last.values():
        sums |= {count + other for other in sums}
    return sums


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "perf.data")
        code, _, err = record(path, "-e", "cpu-clock")
        if code != 0:
            print(f"skipped: no events here: {err}")
            return 77
        cases = [
            (["-e", "{cpu-clock,page-faults}:S", "--call-graph", "none"],
             ["{cpu-clock,page-faults}"]),
            (["-e", "{cpu-clock,page-faults}:S"], ["{cpu-clock,page-faults}"]),
            (["-e", "{cpu-clock,page-faults}:S", "--unwind", "later"],
             ["{cpu-clock,page-faults}"]),
            (["-e", "cs,two{cpu-clock,page-faults}:u,{task-clock:u,minor-faults,cs}"],
             ["cs", "two{cpu-clock,page-faults}", "{task-clock:u,minor-faults,cs}"]),
            (["-e", "{faults,task-clock}:Su", "-e", "cpu-clock:u"],
             ["{faults,task-clock}", "cpu-clock:u"]),
        ]
        for args, groups in cases:
            print("---- " + " ".join(args))
            code, _, err = record(path, *args)
            check(code == 0 and ", 0 lost" in err, "is recorded", err)
            check(("leave out children" in err) == (":S" in " ".join(args)),
                  "says that S leaves out children", err)
            lines = lines_of(path)
            check(len(lines) > 10, "has samples", str(lines))
            check_header(path, groups)
            check_perf(path, lines, groups)
            if args[1] == "{cpu-clock,page-faults}:S":
                check_counts(path, lines)
        for text, told in [("{}", "without events"), ("{cs,faults", "'}' is missing"),
                           ("{cpu-clock,no-such}", "no event 'no-such'"),
                           ("{cs,faults}:x", "no modifier")]:
            code, _, err = record(os.path.join(folder, "none"), "-e", text)
            check(code != 0 and told in err, f"{text} is refused", err)
        check(not os.path.exists(os.path.join(folder, "none")), "and nothing written")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
