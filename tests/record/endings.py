#!/usr/bin/env python3
"""How recordings end: endings.py STACKREEL STORM [KILLS]

Every way to end leaves a file that can be read, and says what happened: the command's end and its
code, signals, a duration, SIGKILL at KILLS moments (5 unless said), a full disk, a closed pipe, a
target that goes. Where perf is installed it has to read the files too."""
import os
import pty
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

STACKREEL, STORM = (os.path.abspath(path) for path in sys.argv[1:3])
KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
PERF = shutil.which("perf")
EVENT = ["-e", "cpu-clock", "--no-buildid-cache"]
failures = []


def check(ok, what):
    print(("ok      " if ok else "FAILED  ") + what, flush=True)
    if not ok:
        failures.append(what)


def record(*args, **kwargs):
    return subprocess.run([STACKREEL, "record", *EVENT, *args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120, **kwargs)


def await_recording(process, path):
    """However long a sanitizer's build takes to start on a busy machine."""
    while process.poll() is None and not os.path.exists(path):
        time.sleep(0.01)


def await_handler(process, number):
    """Until the process blocks the signal, to read it itself: before, it would be its end."""
    blocked = 0
    while process.poll() is None and not blocked >> (number - 1) & 1:
        time.sleep(0.01)
        with open(f"/proc/{process.pid}/status", encoding="utf-8", errors="replace") as status:
            blocked = int(re.search(r"^SigBlk:\s*(\w+)", status.read(), re.M).group(1), 16)


def script(path):
    """Exit code and sample lines of our own reading."""
    run = subprocess.run([STACKREEL, "script", "-F", "comm,tid,time,event", "-i", path],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    return run.returncode, run.stdout.splitlines(), run.stderr


def perf_reads(path):
    """Sample count of perf, and what it complained about."""
    with open(path, "rb") as data:
        is_pipe = data.read(16)[8] == 16
        os.lseek(data.fileno(), 0, os.SEEK_SET)
        run = subprocess.run([PERF, "script", "-F", "comm,tid,time,event", "-i",
                              "-" if is_pipe else path], stdin=data, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, timeout=120)
    # Of a pipe perf prints the chains too.
    count = sum("cpu-clock" in line for line in run.stdout.splitlines())
    return run.returncode, count, run.stderr.strip()


def samples_said(stderr):
    found = re.search(r"stackreel: (\d+) samples", stderr)
    return int(found.group(1)) if found else -1


def check_whole(path, what, said=None):
    code, lines, errors = script(path)
    check(code == 0, f"{what}: read back (exit {code}) {errors.strip()[:200]}")
    if said is not None:
        check(len(lines) == said, f"{what}: {said} samples said, {len(lines)} read")
    if PERF:
        code, count, complaints = perf_reads(path)
        check(code == 0 and not complaints, f"{what}: perf reads it {complaints[:200]}")
        check(count == len(lines), f"{what}: perf sees {count} samples, we {len(lines)}")


def command_ends(folder):
    path = f"{folder}/end.data"
    run = record("-o", path, "-F", "2000", "--", STORM, "1")
    check(run.returncode == 7, f"the command's own code: {run.returncode}")
    check_whole(path, "forks and threads", samples_said(run.stderr))
    check(samples_said(run.stderr) > 0, f"samples were taken: {run.stderr.strip()}")
    check(os.stat(path).st_mode & 0o777 == 0o600, "others may not read it")
    # How much of the time goes into exec, where a task has no stack, is the machine's.
    stats = subprocess.run([STACKREEL, "report", "--stats", "-i", path], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, timeout=120).stdout
    ends = {end: int(n.replace(",", ""))
            for n, end in re.findall(r"#\s+([\d,]+) ended: (.*)", stats)}
    no_stack = ends.pop("no stack dumped", 0)
    check(ends.get("root", 0) > 0.99 * sum(ends.values()) > no_stack,
          f"stacks of short-lived processes are complete: {ends}, {no_stack} have none")
    run = record("-o", path, "--", "sh", "-c", "kill -SEGV $$")
    check(run.returncode == 139, f"a signal's code: {run.returncode}")
    check(os.path.exists(path + ".old"), "the recording before is kept as .old")
    check(record("-o", path, "--", "/no/such").returncode == 127, "not found is 127")
    check(record("-o", path, "--", "/").returncode == 126, "not runnable is 126")


def all_events_are_counted(folder):
    """Samples of several events are not said to be of the first; what only tracks is none."""
    for more, said in (((), "samples of cpu-clock,"), (("--no-inherit",), "samples of cpu-clock,"),
                       (("-e", "page-faults"), "samples of cpu-clock and 1 other event,"),
                       (("-e", "page-faults,cs"), "samples of cpu-clock and 2 other events,")):
        run = record("-o", f"{folder}/events.data", *more, "--", STORM, "0.1")
        check(said in run.stderr, f"{more}: {run.stderr.strip()}")


def stacks_grow(folder):
    """Dumps become larger when stacks turn out not to fit them."""
    path = f"{folder}/deep.data"
    run = record("-o", path, "-F", "4000", "--", STORM, "deep")
    complete = re.search(r"([\d.]+) % of (\d+) user stacks complete", run.stderr)
    check(complete and float(complete.group(1)) > 75, f"deep stacks: {run.stderr.strip()}")
    check_whole(path, "deep stacks", samples_said(run.stderr))
    run = record("-o", path, "-F", "4000", "--call-graph", "dwarf,24576", "--", STORM, "deep")
    complete = re.search(r"([\d.]+) % of (\d+) user stacks complete", run.stderr)
    check(complete and float(complete.group(1)) < 25, "a size that is given stays")


def vdso_is_known(folder):
    """Stacks that begin in the vDSO are unwound by its own call-frame information."""
    path = f"{folder}/clock.data"
    run = record("-o", path, "-F", "1000", "--", STORM, "clock")
    complete = re.search(r"([\d.]+) % of (\d+) user stacks complete", run.stderr)
    check(complete and float(complete.group(1)) > 95, f"in the vDSO: {run.stderr.strip()}")


def signals_end(folder):
    for name in ("SIGINT", "SIGTERM", "SIGQUIT"):
        path = f"{folder}/{name}.data"
        process = subprocess.Popen([STACKREEL, "record", *EVENT, "-o", path, "--", STORM, "60"],
                                   stderr=subprocess.PIPE, text=True)
        await_recording(process, path)
        time.sleep(1)
        process.send_signal(getattr(signal, name))
        _, stderr = process.communicate(timeout=60)
        code = 128 + getattr(signal, name)
        check(process.returncode == code, f"{name}: exit {process.returncode}, {code} wanted")
        check_whole(path, name, samples_said(stderr))


def signals_are_inherited(folder):
    """What whoever starts us ignores, the command ignores too, and its end is seen all the same."""
    path = f"{folder}/inherited.data"
    ignored = (signal.SIGHUP, signal.SIGINT, signal.SIGCHLD)

    def ignore():
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

    show = f"grep -E 'Sig(Ign|Blk)' /proc/self/status; exec {STORM} 0.3"
    state = {}
    for name, command in (("alone", []), ("recorded", [STACKREEL, "record", *EVENT, "-o", path,
                                                       "--"])):
        run = subprocess.run([*command, "sh", "-c", show], preexec_fn=ignore, timeout=60,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check(run.returncode == 7, f"signals inherited, {name}: exit {run.returncode}")
        state[name] = run.stdout
    check(state["alone"] == state["recorded"], f"the command's signals: {state}")
    check_whole(path, "signals inherited")
    # As under nohup(1): the terminal goes, the recording goes on.
    process = subprocess.Popen([STACKREEL, "record", *EVENT, "-o", path, "--duration", "1.5", "-a"],
                               preexec_fn=ignore, stderr=subprocess.PIPE, text=True)
    time.sleep(0.5)
    process.send_signal(signal.SIGHUP)
    start = time.monotonic()
    process.communicate(timeout=60)
    check(time.monotonic() - start > 0.5, "a recording under nohup outlasts SIGHUP")
    check(process.returncode == 0, f"nohup: exit {process.returncode}")


def commands_delimit(folder):
    """A command beside -p is not recorded: it says how long."""
    path = f"{folder}/delimited.data"
    target = subprocess.Popen([STORM, "60"])
    run = record("-o", path, "-p", str(target.pid), "--", "sh", "-c", "sleep 0.7; exit 9")
    check(run.returncode == 9, f"-p with a command: exit {run.returncode} {run.stderr}")
    check(target.poll() is None, "the target goes on")
    check_whole(path, "-p with a command", samples_said(run.stderr))
    comms = {line.split()[0] for line in script(path)[1]}
    check("storm" in comms and not comms & {"sh", "sleep"},
          f"-p with a command: only the target is recorded, not {comms}")


def limits_end(folder):
    path = f"{folder}/limit.data"
    start = time.monotonic()
    run = record("-o", path, "--duration", "1", "--", STORM, "60")
    check(run.returncode == 0 and time.monotonic() - start < 30, "a duration ends it and its command")
    check_whole(path, "duration", samples_said(run.stderr))
    run = record("-o", path, "-F", "2000", "--max-size", "30K", "--", STORM, "60")
    check(run.returncode == 0, "a size ends it")
    check_whole(path, "max-size", samples_said(run.stderr))
    run = record("-o", path, "-F", "10000", "--max-size", "1M", "--unwind=later", "--no-compress",
                 "--", STORM, "60")
    check(run.returncode == 0 and os.path.getsize(path) < 1.3e6,
          f"within a round too: {os.path.getsize(path)} bytes")
    check_whole(path, "max-size of stacks", samples_said(run.stderr))
    run = record("-o", path, "-C", "0,7777", "--", "true")
    check(run.returncode == 125 and "CPU 7777" in run.stderr and "online: 0" in run.stderr,
          f"a CPU that is not there: {run.stderr.strip()}")


def files_switch(folder):
    """Files that end within one tick of the clock in their names are all kept."""
    os.mkdir(f"{folder}/switch")
    run = record("-o", f"{folder}/switch/s.data", "-F", "4000", "--unwind=later", "--no-compress",
                 "--switch-output=20K", "--", "sh", "-c",
                 "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
    files = [f"{folder}/switch/{name}" for name in os.listdir(f"{folder}/switch")]
    lines = sum(len(script(path)[1]) for path in files)
    check(len(files) > 2, f"switching: {len(files)} files")
    check(lines == samples_said(run.stderr),
          f"switching: {samples_said(run.stderr)} samples said, {lines} in {len(files)} files")


def switched_files_tell_of_themselves(folder):
    """Unwound while recording: each file says how its own stacks ended, not those before it."""
    os.mkdir(f"{folder}/each")
    record("-o", f"{folder}/each/s.data", "-F", "4000", "--no-compress", "--switch-output=40K", "--",
           "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
    files = sorted(os.listdir(f"{folder}/each"))
    check(len(files) > 2, f"switching while unwinding: {len(files)} files")
    stacks = 0
    for name in files:
        run = subprocess.run([STACKREEL, "report", "-g", "none", "-i", f"{folder}/each/{name}"],
                             stdout=subprocess.PIPE, text=True, timeout=120)
        numbers = [int(found.group(1).replace(",", "")) if found else 0 for found in
                   (re.search(r"^# Samples: ([\d,]+)$", run.stdout, re.M),
                    re.search(r"^# Complete stacks: [\d,]+ of ([\d,]+)", run.stdout, re.M))]
        stacks += numbers[1]
        # One that is begun when the program ends may have none.
        check(numbers[1] <= numbers[0], f"{name}: {numbers[0]} samples, {numbers[1]} stacks")
    check(stacks > 0, f"switching while unwinding: {stacks} stacks")


def directory_stays(folder):
    os.makedirs(f"{folder}/dir/inside")
    run = record("-o", f"{folder}/dir", "--", "true")
    check(run.returncode == 2 and "is a directory" in run.stderr, "a directory is refused")
    check(os.path.isdir(f"{folder}/dir/inside") and not os.path.exists(f"{folder}/dir.old"),
          "and stays where it is")


def old_recordings_stay(folder):
    """What cannot start moves nothing away."""
    path = f"{folder}/stays.data"
    with open(path, "w", encoding="ascii") as old:
        old.write("the old one")
    for args in (["-e", "no-such-event", "--", "true"], ["-p", "999999999"],
                 ["-m", "1048576", "--", "true"]):
        run = record("-o", path, *args)
        check(run.returncode != 0, f"{args[0]} {args[1]} is refused: {run.stderr.strip()[:80]}")
        check(os.listdir(folder).count("stays.data") == 1 and os.path.getsize(path) == 11
              and not os.path.exists(path + ".old"), f"{args[0]}: the old recording stays")
    small = f"{folder}/full"
    os.mkdir(small)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small],
                      stderr=subprocess.DEVNULL, check=False).returncode != 0:
        print("skipped: may not mount a small tmpfs")
        return
    try:
        path = f"{small}/perf.data"
        with open(path, "wb") as old:
            old.write(bytes(64 << 10))  # all there is
        run = record("-o", path, "--", "true")
        check(run.returncode != 0 and "No space left" in run.stderr,
              f"a full disk is refused: {run.returncode}")
        check(os.listdir(small) == ["perf.data"], f"full disk at the start: {os.listdir(small)}")
    finally:
        subprocess.run(["umount", small], check=False)


def links_and_fifos(folder):
    os.mkdir(f"{folder}/far")
    link = f"{folder}/link.data"
    os.symlink("far/real.data", link)
    for turn in range(2):
        run = record("-o", link, "--", STORM, "0.3")
        check(run.returncode == 7, f"through a link: {run.stderr.strip()[:100]}")
        check(os.path.islink(link) and os.path.isfile(f"{folder}/far/real.data"),
              f"turn {turn}: the link stays, what it leads to is written")
        check_whole(link, "through a link", samples_said(run.stderr))
    check(os.path.exists(f"{folder}/far/real.data.old") and not os.path.lexists(link + ".old"),
          "the old recording is where the link leads")
    fifo = f"{folder}/fifo"
    os.mkfifo(fifo)
    with open(f"{folder}/fifo.data", "wb") as out, \
            subprocess.Popen(["cat", fifo], stdout=out) as reader:
        run = record("-o", fifo, "--", STORM, "0.3")
        reader.wait(timeout=60)
    check(run.returncode == 7, f"into a FIFO: {run.stderr.strip()[:100]}")
    check_whole(f"{folder}/fifo.data", "FIFO", samples_said(run.stderr))
    waits = subprocess.Popen([STACKREEL, "record", *EVENT, "-o", fifo, "--", "true"],
                             stderr=subprocess.PIPE, text=True)
    await_handler(waits, signal.SIGINT)
    waits.send_signal(signal.SIGINT)
    _, stderr = waits.communicate(timeout=20)
    check(waits.returncode != 0 and "nobody has read" in stderr, "a FIFO without a reader can be left")


def target_goes(folder):
    path = f"{folder}/target.data"
    target = subprocess.Popen([STORM, "2"])
    run = record("-o", path, "-p", str(target.pid))
    check(run.returncode == 0, f"a target that ends, ends it: exit {run.returncode}")
    target.wait()
    check_whole(path, "target gone", samples_said(run.stderr))
    run = record("-o", path, "-p", str(target.pid))
    check(run.returncode == 125 and "no process" in run.stderr, "no such target is 125")


def killed(folder):
    """perf reads nothing of a recording that was not finished, its own neither; we do."""
    with_samples = 0
    for i in range(KILLS):
        path = f"{folder}/kill.data"
        for old in (path, path + ".old"):
            if os.path.exists(old):
                os.unlink(old)
        process = subprocess.Popen([STACKREEL, "record", *EVENT, "-F", "2000",
                                    *(["--unwind=later"] if i % 3 == 2 else []),
                                    *(["--no-compress"] if i % 2 == 1 else []), "-o", path,
                                    "--", STORM, "30"], stderr=subprocess.DEVNULL,
                                   start_new_session=True)
        # From its first bytes on.
        await_recording(process, path)
        time.sleep(random.choice((random.uniform(0, 0.05), random.uniform(0, 1.5))))
        process.kill()
        process.wait()
        subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)  # its command
        code, lines, errors = script(path)
        with_samples += bool(lines)
        if len(lines) > 300:  # what lies behind the data of a whole recording is not missed
            heads = subprocess.run([STACKREEL, "report", "--header", "-i", path],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   timeout=120)
            text = heads.stdout + heads.stderr
            check("# hostname" in text, f"kill {i}: the machine is known")
            check("[unknown]" not in text or "[k]" in text, f"kill {i}: kernel names are known")
            if i % 3 != 2:
                check("Complete stacks" in text, f"kill {i}: completeness is said")
        check(code in (0, 4) and "was not finished" in errors,
              f"kill {i}: {len(lines)} samples read, exit {code}, and the loss is said "
              f"{'' if code in (0, 4) else errors.strip()[:200]}")
    check(with_samples > 0, f"{with_samples} of {KILLS} had samples in the file")


def disk_full(folder):
    small = f"{folder}/small"
    os.mkdir(small)
    for size, how in (("256k", []),
                      ("4m", ["--unwind=later", "--no-compress", "--call-graph", "dwarf,8192"])):
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", small],
                               stderr=subprocess.DEVNULL)
        if mount.returncode != 0:
            print("skipped disk_full: may not mount a small tmpfs")
            return
        try:
            path = f"{small}/full.data"
            run = record("-F", "10000", *how, "-o", path, "--", STORM, "60")
            check(run.returncode == 1, f"disk full: exit {run.returncode}, 1 wanted")
            check("No space left" in run.stderr, "disk full is said")
            check_whole(path, "disk full", samples_said(run.stderr))
            lost = re.search(r"(\d+) not written", run.stderr)
            check(lost and int(lost.group(1)) > 0, f"what was lost is said: {run.stderr.strip()}")
            check(len(script(path)[1]) > 100, "disk full: what was written is there")
        finally:
            subprocess.run(["umount", small], check=False)


def size_limits(folder):
    """ulimit -f: an error of writing like a full disk, in every command."""
    path = f"{folder}/limited.data"

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300000, 300000))

    for how in ([], ["--unwind=later", "--no-compress", "--call-graph", "dwarf,8192"]):
        run = record("-F", "10000", *how, "-o", path, "--", STORM, "20", preexec_fn=limit)
        check(run.returncode == 1 and "File too large" in run.stderr,
              f"ulimit -f {how}: exit {run.returncode} {run.stderr.strip()[:200]}")
        check("not written" in run.stderr, f"ulimit -f: the loss is said {run.stderr.strip()}")
        if how:
            check_whole(path, "ulimit -f", samples_said(run.stderr))
            continue
        # There is no room behind the records for what perf needs to unpack them.
        code, lines, errors = script(path)
        check(code == 0 and len(lines) == samples_said(run.stderr),
              f"ulimit -f: {len(lines)} samples read, {samples_said(run.stderr)} said {errors}")
    text = subprocess.run([STACKREEL, "script", "-i", path, "-o", f"{folder}/limited.txt"],
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
                          stderr=subprocess.PIPE, text=True, timeout=60)
    check(text.returncode == 1 and "File too large" in text.stderr,
          f"script under ulimit -f: exit {text.returncode} {text.stderr.strip()[:200]}")
    check(not os.path.exists(f"{folder}/limited.txt"), "and leaves nothing")


def quit_key(folder):
    """^\\ of a terminal is the command's to answer; its end ends the recording."""
    for command, code in ((f"exec {STORM} 30", 131), (f"trap : QUIT; {STORM} 1", 7)):
        path = f"{folder}/quit.data"
        if os.path.exists(path):
            os.unlink(path)
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(STACKREEL, [STACKREEL, "record", *EVENT, "-o", path, "--", "sh", "-c", command])
        while not os.path.exists(path):
            time.sleep(0.01)
        time.sleep(0.4)
        os.write(terminal, b"\x1c")
        said = b""
        try:
            while chunk := os.read(terminal, 4096):
                said += chunk
        except OSError:
            pass  # the terminal has no other end any more
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        said = said.decode()
        # The trap is sh's; what it started is ended by the key.
        check(os.waitstatus_to_exitcode(status) in (code, 131),
              f"^\\: exit {os.waitstatus_to_exitcode(status)}, {code} wanted {said[:200]}")
        check_whole(path, "^\\", samples_said(said))


def long_names(folder):
    path = f"{folder}/{'n' * 255}"
    run = record("-o", path, "--", STORM, "0.2")
    check(run.returncode == 7, f"a name of 255 letters: {run.stderr.strip()[-200:]}")
    check_whole(path, "a name of 255 letters", samples_said(run.stderr))
    run = record("-o", path, "--", STORM, "0.2")
    check(run.returncode == 2 and "251 are the most" in run.stderr,
          f"no room for .old: exit {run.returncode} {run.stderr.strip()[-200:]}")
    check_whole(path, "the recording of that name stays")


def setuid_programs(folder):
    """The kernel measures no program that runs with other rights than its user's; that is said."""
    if os.getuid() != 0 or not shutil.which("setpriv"):
        print("skipped setuid_programs: must be root")
        return
    user = 65534
    place = f"{folder}/setuid"
    os.mkdir(place)
    os.chmod(folder, 0o755)
    os.chown(place, user, user)
    program = f"{place}/program"
    shutil.copy(STORM, program)
    run = None
    for mode in (0o755, 0o4755):
        os.chmod(program, mode)
        run = subprocess.run(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups",
                              STACKREEL, "record", "-e", "cpu-clock:u", "--no-buildid-cache", "-o",
                              f"{place}/{mode}.data", "--", program, "0.5"], text=True, timeout=60,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if run.returncode == 125:
            print(f"skipped setuid_programs: {run.stderr.strip()[:200]}")
            return
        check(("(set-user-ID)" in run.stderr) == (mode == 0o4755),
              f"mode {mode:o}: {run.stderr.strip()}")
        check((samples_said(run.stderr) > 0) == (mode == 0o755), f"mode {mode:o}: samples")
    check("sudo stackreel record -- " in run.stderr, "and what helps")


def forks_while_starting(folder):
    """Children forked while events are opened on their parent have their name and mappings."""
    target = subprocess.Popen([STORM, "60"])
    nameless = samples = 0
    try:
        for _ in range(8):
            path = f"{folder}/forks.data"
            record("-o", path, "-F", "4000", "-p", str(target.pid), "--duration", "0.1")
            lines = script(path)[1]
            samples += len(lines)
            nameless += sum(line.split()[0].startswith(":") for line in lines)
    finally:
        target.kill()
        target.wait()
    check(samples > 0 and nameless == 0, f"-p: {nameless} of {samples} samples have no name")


def pipes(folder):
    path = f"{folder}/pipe.data"
    with open(path, "wb") as out:
        run = subprocess.run([STACKREEL, "record", *EVENT, "-o", "-", "--", "sh", "-c",
                              f"echo hello; {STORM} 0.5"], stdout=out, stderr=subprocess.PIPE,
                             text=True, timeout=60)
    check("hello" in run.stderr, "the command's output keeps out of the pipe")
    check_whole(path, "pipe", samples_said(run.stderr))
    closed = subprocess.run(f"{STACKREEL} record {' '.join(EVENT)} -F 2000 -o - -- {STORM} 30 "
                            f"| head -c 20000 > /dev/null; exit ${{PIPESTATUS[0]}}", shell=True,
                            executable="/bin/bash", stderr=subprocess.PIPE, text=True, timeout=60)
    check(closed.returncode == 1 and "Broken pipe" in closed.stderr,
          f"a closed pipe: exit {closed.returncode}")


if record("-o", "/dev/null", "--", "true").returncode == 125:
    print("skipped: events may not be opened here")
    sys.exit(77)
with tempfile.TemporaryDirectory() as scratch:
    for part in (command_ends, all_events_are_counted, stacks_grow, vdso_is_known, signals_end,
                 signals_are_inherited, commands_delimit, limits_end, files_switch,
                 switched_files_tell_of_themselves, directory_stays, old_recordings_stay,
                 links_and_fifos, target_goes, forks_while_starting, killed, disk_full, size_limits,
                 quit_key, long_names, setuid_programs, pipes):
        part(scratch)
if failures:
    sys.exit(f"{len(failures)} failed:\n  " + "\n  ".join(failures))
