#!/usr/bin/env python3
"""What cannot be traced is refused with cause and cure, and goes on as it was.

  refusals.py [--update] STACKREEL SOURCE EXPECTED

EXPECTED has a section a case, "== NAME: exit CODE" and what was written, process ids as PID.
--update writes what came out: look at the difference before you commit it. Cases that cannot be made
here (no gdb, not root) are passed over. Exit code 77: there is no compiler."""
import difflib
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from checks import build

UPDATE = "--update" in sys.argv
STACKREEL, SOURCE, EXPECTED = (os.path.abspath(p) for p in sys.argv[1:] if p != "--update")
NOBODY = 65534


def write_32_bit(path):
    """A 32-bit program without a C library: write(1, "ready\\n", 6), then nanosleep(1 s), again and
    again."""
    base, start, code_size = 0x8048000, 0x54, 38
    pause = base + start + code_size
    message = pause + 8
    code = b"".join([
        b"\xb8\4\0\0\0\xbb\1\0\0\0\xb9", struct.pack("<I", message), b"\xba\6\0\0\0\xcd\x80",
        b"\xb8\xa2\0\0\0\xbb", struct.pack("<I", pause), b"\x31\xc9\xcd\x80\xeb\xf0"])
    assert len(code) == code_size
    code += struct.pack("<II", 1, 0) + b"ready\n"
    size = start + len(code)
    head = b"\x7fELF\x01\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIIIIIHHHHHH", 2, 3, 1, base + start, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 4096)
    with open(path, "wb") as file:
        file.write(head + segment + code)
    os.chmod(path, 0o755)


class Target:
    """A program that waits until it is told to end."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.is_ready = self.process.stdout.readline() == b"ready\n"
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def goes_on(self):
        return self.process.poll() is None


class Cases:
    def __init__(self, folder):
        self.folder = folder
        self.program = os.path.join(folder, "refusals")
        self.sections, self.wrong = {}, []

    def trace(self, name, *arguments, target=None, before=()):
        trace = os.path.join(self.folder, "trace")
        self.command(name, "trace", "--duration", "0.2", "-o", trace, *arguments, before=before)
        if target is not None and not target.goes_on():
            self.wrong.append(f"{name}: the program ended with {target.process.poll()}")

    def command(self, name, *words, before=()):
        run = subprocess.run([*before, STACKREEL, *words], capture_output=True, text=True,
                             timeout=60)
        text = run.stderr.replace(self.folder, "DIR")
        text = re.sub(r"(\bprocess|\bthread|\bby|-p|-CONT) \d+", r"\1 PID", text)
        text = re.sub(r"\d+ (calls?|bytes|return addresses)\b", r"N \1", text)
        self.sections[name] = f"exit {run.returncode}\n{text}"

    def run(self):
        plain = [self.program, "plain"]
        with Target(*plain) as target:
            pid = str(target.pid)
            self.trace("near_names", "-P", "parse_lin", "-p", pid, target=target)
            self.trace("no_such_name", "-P", "zebra", "-p", pid, target=target)
            self.trace("no_function_named", "-p", pid, target=target)
            # Of several patterns that match, the last decides.
            for name, kinds in (("left_out_again", "PU"), ("named_again", "UP"),
                                ("left_out_at_last", "PUPU")):
                self.trace(name, *(word for kind in kinds for word in ("-" + kind, "parse_line")),
                           "-p", pid, target=target)
            # As where the kernel or a container allows no perf events.
            self.trace("samples_refused", "--with-samples", "-P", "parse_line", "-p", pid,
                       target=target, before=(self.program, "without_events"))
            for name, frequency in (("samples_no_number", "often"), ("samples_zero", "0"),
                                    ("samples_empty", "")):
                self.trace(name, "--with-samples=" + frequency, "-P", "parse_line", "-p", pid,
                           target=target)
        self.trace("gone", "-P", "main", "-p", pid)
        self.trace("command_and_pid", "-P", "main", "-p", pid, "--", "/bin/true")
        for kind in ("strict", "killing_filter", "harmless_filter", "changed_code"):
            with Target(self.program, kind) as target:
                if target.is_ready:
                    self.trace(kind, "-P", "parse_line", "-p", str(target.pid), target=target)
        self.run_32_bit()
        self.run_traced_by_others()
        self.run_killed()
        if os.geteuid() == 0:
            os.chmod(self.folder, 0o755)
            with Target(*plain) as target:
                self.trace("other_user", "-P", "parse_line", "-p", str(target.pid), target=target,
                           before=("setpriv", f"--reuid={NOBODY}", "--clear-groups"))
                self.trace("root_of_a_container", "-P", "parse_line", "-p", str(target.pid),
                           target=target, before=("setpriv", "--bounding-set=-sys_ptrace",
                                                  "--inh-caps=-sys_ptrace"))

    def run_32_bit(self):
        program = os.path.join(self.folder, "small")
        write_32_bit(program)
        try:
            with Target(program) as target:
                if target.is_ready:
                    self.trace("32_bit", "-P", ".", "-p", str(target.pid), target=target)
        except OSError:
            pass  # this kernel runs none

    def run_traced_by_others(self):
        if shutil.which("gdb"):
            with Target(self.program, "plain") as target:
                with subprocess.Popen(["gdb", "-q", "-nx", "-p", str(target.pid)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT) as debugger:
                    wait_until(lambda: tracer_of(target.pid) != 0)
                    self.trace("traced_by_gdb", "-P", "parse_line", "-p", str(target.pid),
                               target=target)
                    debugger.kill()
        with Target(self.program, "plain") as target:
            command = [STACKREEL, "trace", "-P", "parse_line", "-p", str(target.pid), "-o",
                       os.path.join(self.folder, "first")]
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as first:
                first.stderr.readline()  # that it has begun
                self.trace("traced_by_stackreel", "-P", "parse_line", "-p", str(target.pid),
                           target=target)
                first.send_signal(signal.SIGSTOP)
                pid = str(target.pid)
                self.command("tracer_is_stopped", "status", "-p", pid)
                self.command("patch_by_stopped_tracer", "patch", "-p", pid, "parse_file")
                self.command("filter_by_stopped_tracer", "filter", "-p", pid, "-F", "parse_line")
                first.send_signal(signal.SIGCONT)
                # What was refused is not done later either.
                status = subprocess.run([STACKREEL, "status", "-p", pid, "--json"],
                                        capture_output=True, text=True, timeout=60).stdout
                if not re.search(r'"named": 1,', status) or '"filters"' in status:
                    self.wrong.append(f"what was refused was done: {status}")
                first.send_signal(signal.SIGINT)

    def run_killed(self):
        """At moments spread over the attaching: told as an end, whatever it was doing."""
        for i in range(10):
            with Target(self.program, "plain") as target:
                killer = subprocess.Popen(["/bin/sh", "-c", f"sleep 0.00{i}; kill -9 {target.pid}"])
                run = subprocess.run([STACKREEL, "trace", "-P", ".", "-p", str(target.pid), "-o",
                                      os.path.join(self.folder, "trace"), "--duration", "1"],
                                     capture_output=True, text=True, timeout=60)
                killer.wait()
                if run.returncode == 0:
                    continue
                if not re.search(r"process \d+ (ended while|runs no program|has ended)|there is no "
                                 r"process", run.stderr):
                    self.wrong.append(f"killed while it is attached to: {run.stderr}")


def wait_until(condition):
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    sys.exit("waited for too long")


def tracer_of(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"^TracerPid:\s*(\d+)", status.read(), re.M).group(1))


def read_sections(path):
    with open(path) as file:
        parts = re.split(r"^== (\w+): ", file.read(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def main():
    with tempfile.TemporaryDirectory() as folder:
        cases = Cases(folder)
        build(SOURCE, cases.program, "-O1")
        cases.run()
    if UPDATE:
        with open(EXPECTED, "w") as file:
            for name, text in cases.sections.items():
                file.write(f"== {name}: {text}")
        print("\n".join(cases.wrong))
        return 0
    expected = read_sections(EXPECTED)
    failed = bool(cases.wrong)
    print("\n".join(cases.wrong))
    for name, text in cases.sections.items():
        if expected.get(name) == text:
            continue
        failed = True
        sys.stdout.writelines(difflib.unified_diff(
            expected.get(name, "").splitlines(True), text.splitlines(True), f"{name}",
            f"{name} (now)"))
    for name in expected.keys() - cases.sections.keys():
        print(f"{name}: passed over")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
