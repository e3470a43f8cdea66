#!/usr/bin/env python3
"""Signals and the commands that are traced or recorded: signals.py STACKREEL SOURCE

A command ends by what ends its tracer: signals of kill(1), and the terminal's hang-up, which the
kernel sends to the leader of the session alone. Keys of the terminal reach the command once. What a
signal leaves unfinished of a trace's copy is removed. Exit code 77: there is no compiler, or nothing may be traced here."""
import os
import pty
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "trace"))
from checks import SKIPPED, build, check, is_refused, result

STACKREEL, SOURCE = (os.path.abspath(path) for path in sys.argv[1:3])
WAYS = {"trace": ["-P", "."], "record": ["-e", "cpu-clock", "--no-buildid-cache"]}
PATIENCE = 30


def arguments(way, folder, command):
    return [STACKREEL, way, *WAYS[way], "-o", os.path.join(folder, way), "--", *command]


def by_kill(way, folder, program, number):
    # What ends a terminal's jobs may be ignored here, as in a script's background.
    process = subprocess.Popen(arguments(way, folder, [program]), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    if process.stdout.readline() != "ready\n":
        said = process.communicate()[1]
        return is_refused(said) or check(False, f"{way} begins: {said}")
    process.send_signal(number)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
    check(process.wait() == 128 + number,
          f"{way}: {number.name} ends command and tracer: {process.returncode}")
    process.stdout.close()
    process.stderr.close()
    return False


class Terminal:
    """Of which the tracer is the session's leader, as under ssh -t or xterm -e."""

    def __init__(self, command):
        self.leader, self.fd = pty.fork()
        if self.leader == 0:
            for number in (signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            os.execv(command[0], command)
        said = b""
        while not said.endswith(b"ready\r\n"):
            said += os.read(self.fd, 1)
        children = f"/proc/{self.leader}/task/{self.leader}/children"
        self.command = int(open(children).read().split()[0])

    def end_of_leader(self):
        """Its exit code; None if it goes on."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            ended, status = os.waitpid(self.leader, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.kill(self.leader, signal.SIGKILL)
        os.waitpid(self.leader, 0)
        return None


def by_terminal(way, folder, program):
    terminal = Terminal(arguments(way, folder, [program]))
    os.close(terminal.fd)
    code = terminal.end_of_leader()
    check(code == 128 + signal.SIGHUP, f"{way}: a hang-up ends command and tracer: {code}")
    try:
        os.kill(terminal.command, signal.SIGKILL)
        check(False, f"{way}: the command ended at the hang-up")
    except ProcessLookupError:
        pass
    terminal = Terminal(arguments(way, folder, [program, "count"]))
    os.write(terminal.fd, b"\x03")
    code = terminal.end_of_leader()
    check(code == 1, f"{way}: Ctrl-C reaches the command once: {code}")
    os.close(terminal.fd)


def of_convert(folder, program):
    trace, copy = os.path.join(folder, "many"), os.path.join(folder, "copies", "copy")
    os.mkdir(os.path.dirname(copy))
    subprocess.run([STACKREEL, "trace", "-q", "-P", "call", "-o", trace, "--", program, "a", "b"],
                   check=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        process = subprocess.Popen([STACKREEL, "convert", "--to=uftrace", "-i", trace, "-o", copy],
                                   preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
        unfinished = f"{copy}.unfinished-{process.pid}"
        while process.poll() is None and not (os.path.isdir(unfinished) and os.listdir(unfinished)):
            time.sleep(0.001)
        process.send_signal(number)
        left = process.wait(PATIENCE), os.listdir(os.path.dirname(copy))
        check(left == (-number, []), f"convert: {number.name} leaves nothing: {left}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "signals")
        build(SOURCE, program, "-O1", "-g")
        for way in WAYS:
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
                if by_kill(way, folder, program, number):
                    return SKIPPED
            by_terminal(way, folder, program)
        of_convert(folder, program)
    return result()


if __name__ == "__main__":
    sys.exit(main())
