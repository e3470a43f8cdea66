#!/usr/bin/env python3
"""Servers under load are traced and left again, while clients check every answer. To be run by hand.

  servers.py STACKREEL [--rounds=50] [--window=0.5] [--clients=4] [--only=nginx,redis,postgres]

In each round the server is attached to, about a thousand of its functions are patched, unpatched
(while the trace goes on), and it is left. Told are answers a second before, during and after, of all
rounds together. It fails if an answer is wrong or missing, or if the server is not left as it was.
Exit code 77: there is none of the servers."""
import argparse
import glob
import hashlib
import multiprocessing
import os
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from checks import SKIPPED

PATIENCE = 60  # of what takes moments
FILES = 50


class Connection:
    """Bytes as they come."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(path)
        self.buffer = b""

    def send(self, data):
        self.socket.sendall(data)

    def take(self, size):
        while len(self.buffer) < size:
            self.more()
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def line(self, end=b"\r\n"):
        while end not in self.buffer:
            self.more()
        taken, self.buffer = self.buffer.split(end, 1)
        return taken

    def more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the server has hung up")
        self.buffer += data


def text_of(number):
    """What file, key or row `number` is to hold."""
    return hashlib.sha256(str(number).encode()).hexdigest() * (1 + number % 40)


class Nginx:
    pattern = ["."]

    def __init__(self, folder):
        self.socket = os.path.join(folder, "socket")
        for number in range(FILES):
            with open(os.path.join(folder, f"{number}.txt"), "w", encoding="ascii") as file:
                file.write(text_of(number))
        config = os.path.join(folder, "nginx.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write(f"daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error;"
                       f" events {{}} http {{ access_log off; keepalive_requests 1000000;"
                       f" client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;"
                       f" fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u;"
                       f" scgi_temp_path {folder}/s;"
                       f" server {{ listen unix:{self.socket}; root {folder}; }} }}")
        os.chmod(folder, 0o755)
        self.process = subprocess.Popen(["nginx", "-c", config, "-e", f"{folder}/error"])

    def ready(self):
        return os.path.exists(self.socket)

    def client(self, _):
        connection = Connection(self.socket)
        number = 0
        while True:
            number = (number + 7) % FILES
            connection.send(b"GET /%d.txt HTTP/1.1\r\nHost: x\r\n\r\n" % number)
            head = connection.line(b"\r\n\r\n")
            length = int(re.search(rb"Content-Length: (\d+)", head).group(1))
            body = connection.take(length).decode()
            yield b"200 OK" in head and body == text_of(number)

    def traced(self, _):
        """Its worker."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children",
                  encoding="ascii") as file:
            return int(file.read().split()[0])


class Redis:
    pattern = ["^[a-dghi]"]

    def __init__(self, folder):
        self.socket = os.path.join(folder, "socket")
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--dir",
             folder, "--hz", "100"], stdout=subprocess.DEVNULL)

    def ready(self):
        return os.path.exists(self.socket)

    def client(self, who):
        connection = Connection(self.socket)
        count = 0

        def ask(*words):
            connection.send(b"*%d\r\n" % len(words) + b"".join(
                b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
            line = connection.line()
            return connection.take(int(line[1:]) + 2)[:-2] if line[:1] == b"$" else line

        while True:
            count += 1
            key, value = b"%d:%d" % (who, count % FILES), text_of(count).encode()
            yield ask(b"SET", key, value) == b"+OK"
            yield ask(b"GET", key) == value
            yield ask(b"INCR", b"n%d" % who) == b":%d" % count
            yield ask(b"HSET", b"h%d" % who, b"f%d" % count, b"x") == b":1"
            yield ask(b"LPUSH", b"l%d" % who, key) == b":%d" % count

    def traced(self, _):
        return self.process.pid


class Postgres:
    pattern = ["^[Eehx]|^p[qao]|^tt"]

    def __init__(self, folder):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        self.folder = folder
        self.socket = os.path.join(folder, ".s.PGSQL.5432")
        user = None
        if os.geteuid() == 0:  # it refuses to be root's
            user = "postgres"
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        data = os.path.join(folder, "data")
        subprocess.run([f"{programs}/initdb", "-D", data, "-U", "test", "-A", "trust", "--no-sync"],
                       check=True, stdout=subprocess.DEVNULL, user=user, cwd="/")
        self.process = subprocess.Popen(
            [f"{programs}/postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", "-c",
             "fsync=off"], stderr=subprocess.DEVNULL, user=user, cwd="/")
        self.pids = multiprocessing.Array("i", 64)

    def ready(self):
        try:
            self.query(self.connect(), "CREATE TABLE IF NOT EXISTS rows (k int PRIMARY KEY, v text)")
            return True
        except OSError:
            return False

    def connect(self):
        connection = Connection(self.socket)
        words = struct.pack(">I", 196608) + b"user\0test\0database\0postgres\0\0"
        connection.send(struct.pack(">I", len(words) + 4) + words)
        self.rows(connection)
        return connection

    @staticmethod
    def rows(connection):
        """Values of all rows up to ReadyForQuery; an error is one too."""
        values = []
        while True:
            kind, length = struct.unpack(">cI", connection.take(5))
            body = connection.take(length - 4)
            if kind == b"Z":
                return values
            if kind == b"E":
                values.append(body)
            if kind == b"D":
                at = 2
                for _ in range(struct.unpack_from(">H", body)[0]):
                    size = struct.unpack_from(">i", body, at)[0]
                    values.append(body[at + 4:at + 4 + max(size, 0)])
                    at += 4 + max(size, 0)

    def query(self, connection, text):
        text = text.encode() + b"\0"
        connection.send(b"Q" + struct.pack(">I", len(text) + 4) + text)
        return self.rows(connection)

    def client(self, who):
        connection = self.connect()
        self.pids[who] = int(self.query(connection, "SELECT pg_backend_pid()")[0])
        base = 1000 * who
        count = 0
        while True:
            count += 1
            key, value = base + count % FILES, text_of(count)
            yield self.query(connection, f"INSERT INTO rows VALUES ({key}, '{value}') ON CONFLICT (k)"
                             f" DO UPDATE SET v = '{value}' RETURNING k") == [str(key).encode()]
            yield self.query(connection, f"SELECT v FROM rows WHERE k = {key}") == [value.encode()]
            yield self.query(
                connection, f"SELECT count(*), sum(length(v)) > 0 FROM rows WHERE k >= {base} AND"
                f" k < {base} + 1000") == [str(min(count, FILES)).encode(), b"t"]

    def traced(self, number):
        return self.pids[number]


SERVERS = {"nginx": (Nginx, "nginx"), "redis": (Redis, "redis-server"),
           "postgres": (Postgres, "pg_ctlcluster")}


def run_client(server, who, answers, wrong, stop):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for is_right in server.client(who):
            answers[who] += 1
            wrong[who] += not is_right
            if stop.value:
                return
    except Exception as error:  # pylint: disable=broad-exception-caught
        print(f"client {who}: {error!r}", flush=True)
        wrong[who] += 1


class Load:
    """Clients of a server, each a process."""

    def __init__(self, server, clients):
        self.answers = multiprocessing.Array("Q", clients, lock=False)
        self.wrong = multiprocessing.Array("Q", clients, lock=False)
        self.stop = multiprocessing.Value("b", 0)
        self.clients = [multiprocessing.Process(
            target=run_client, args=(server, who, self.answers, self.wrong, self.stop))
            for who in range(clients)]
        for client in self.clients:
            client.start()

    def rate(self, seconds):
        before, begin = sum(self.answers), time.monotonic()
        time.sleep(seconds)
        return (sum(self.answers) - before) / (time.monotonic() - begin)

    def end(self):
        self.stop.value = 1
        for client in self.clients:
            client.join(PATIENCE)
            if client.exitcode is None:
                client.kill()
                self.wrong[0] += 1


def one_round(stackreel, pid, pattern, trace, load, window):
    """Answers a second in the three parts, how many functions were patched, and what went wrong."""
    before = load.rate(window)
    patterns = [word for text in pattern for word in ("-P", text)]
    tracer = subprocess.Popen([stackreel, "trace", "-p", str(pid), *patterns, "-o", trace],
                              stderr=subprocess.PIPE, text=True)
    line = tracer.stderr.readline()
    functions = int((re.search(r"tracing (\d+) functions", line) or [0, 0])[1])
    during = load.rate(window)
    commands = [[stackreel, "unpatch", "-p", str(pid), *pattern],
                [stackreel, "detach", "-p", str(pid)]]
    told = "".join(subprocess.run(command, capture_output=True, text=True, check=False,
                                  timeout=PATIENCE).stderr for command in commands)
    _, stderr = tracer.communicate(timeout=PATIENCE)
    after = load.rate(window)
    is_left = functions > 0 and "every byte is as it was" in stderr + told
    return before, during, after, functions, "" if is_left else line + told + stderr


def try_server(name, options):
    kind, _ = SERVERS[name]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        server = kind(tempfile.mkdtemp(dir=folder))
        end = time.monotonic() + PATIENCE
        while not server.ready() and time.monotonic() < end:
            time.sleep(0.1)
        load = Load(server, options.clients)
        time.sleep(1)
        sums = [0.0, 0.0, 0.0]
        functions = 0
        for number in range(options.rounds):
            *rates, functions, problem = one_round(
                options.stackreel, server.traced(number % options.clients), server.pattern,
                os.path.join(folder, "trace"), load, options.window)
            sums = [a + b for a, b in zip(sums, rates)]
            if problem:
                failed += 1
                print(f"{name}, round {number}: {problem}")
            if server.process.poll() is not None:
                print(f"{name} has ended with {server.process.returncode}")
                failed += 1
                break
        load.end()
        before, during, after = (total / options.rounds for total in sums)
        wrong = sum(load.wrong)
        print(f"{name}: {options.rounds} rounds of {functions} functions; answers a second: {before:.0f}"
              f" before, {during:.0f} during ({during / before:.0%}), {after:.0f} after"
              f" ({after / before:.0%}); {sum(load.answers)} answers, {wrong} wrong,"
              f" {failed} rounds failed", flush=True)
        server.process.send_signal(signal.SIGINT if name == "postgres" else signal.SIGTERM)
        server.process.wait(PATIENCE)
    return wrong + failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stackreel", type=os.path.abspath)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--window", type=float, default=0.5)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--only", default=",".join(SERVERS))
    options = parser.parse_args()
    os.environ["PATH"] += ":/usr/sbin"
    names = [name for name in options.only.split(",") if shutil.which(SERVERS[name][1])]
    if not names:
        print("none of these servers is here")
        return SKIPPED
    return 1 if sum(try_server(name, options) for name in names) else 0


if __name__ == "__main__":
    sys.exit(main())
