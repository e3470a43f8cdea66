"""What a recording holds, as `perf script -D` tells it sample by sample.

The proofs of compare_perf_script.py rest on this: the words at the end of each stack dump, and which
files perf believes to be mapped where. Read from perf, not from stackreel, so that a fault of ours
cannot prove itself.
"""

import functools
import re
import struct
import subprocess

SAMPLE = re.compile(r"PERF_RECORD_SAMPLE\(.*?\): (\d+)/(\d+): ")
STACK = re.compile(r"^\.\.\. ustack: size (\d+), offset (0x[0-9a-f]+)")
MMAP = re.compile(r"PERF_RECORD_MMAP2? (-?\d+)/-?\d+: \[(0x[0-9a-f]+|0)\((0x[0-9a-f]+|0)\) @ (\S+?)"
                  r"(?: [0-9a-f]+:[0-9a-f]+ \d+ \d+|<[0-9a-f]*>)?\]: \S+ (.*)$")
FORK = re.compile(r"PERF_RECORD_FORK\((\d+):\d+\):\((\d+):\d+\)")
EXEC = re.compile(r"PERF_RECORD_COMM exec: .*:(\d+)/(\d+)$")


class Mapping:
    """One executable or data mapping; `program` counts the exec calls of its process before it."""

    def __init__(self, start, end, offset, path, program):
        self.start, self.end, self.offset = start, end, offset
        self.path, self.program = path, program

    def cut(self, start, end):
        return Mapping(start, end, self.offset + start - self.start, self.path, self.program)


class PerfMaps:
    """The mappings of all processes as perf keeps them: copied at a fork, cut by what is mapped over
    them, and not dropped at exec."""

    def __init__(self):
        self.maps = {}
        self.programs = {}

    def mmap(self, pid, start, size, offset, path):
        end = start + size
        kept = []
        for old in self.maps.get(pid, ()):
            if old.end <= start or end <= old.start:
                kept.append(old)
                continue
            if old.start < start:
                kept.append(old.cut(old.start, start))
            if end < old.end:
                kept.append(old.cut(end, old.end))
        kept.append(Mapping(start, end, offset, path, self.programs.get(pid, 0)))
        self.maps[pid] = tuple(kept)

    def fork(self, pid, parent):
        if pid != parent:
            self.maps[pid] = self.maps.get(parent, ())
            self.programs[pid] = self.programs.get(parent, 0)

    def exec(self, pid):
        self.programs[pid] = self.programs.get(pid, 0) + 1


class SampleFacts:
    def __init__(self, pid, maps, program):
        self.pid = pid
        self.maps = maps          # of its process at its time
        self.program = program    # which of its programs it runs, by count of exec calls
        self.stack_size = None    # of the dump; None: the sample has none
        self.last_word = None     # the last eight bytes of the dump
        self.frames = []          # perf's frame lines with symbols and offsets into them

    def mapping_at(self, address):
        for mapping in self.maps:
            if mapping.start <= address < mapping.end:
                return mapping
        return None

    def is_left_from_old_program(self, address):
        mapping = self.mapping_at(address)
        return mapping is not None and mapping.program != self.program

    def paths(self):
        return {mapping.path for mapping in self.maps}

    def takes_wrong_base(self, path, bias):
        """Perf takes the lowest mapping of a file as where it is loaded, to find its .eh_frame_hdr.
        That one may be of a program before the last exec, or of a program reading the file."""
        starts = [mapping.start for mapping in self.maps if mapping.path == path]
        return bool(starts) and min(starts) - lowest_segment(path) != bias


@functools.cache
def lowest_segment(path):
    """The page of a 64-bit ELF file's first PT_LOAD segment."""
    with open(path, "rb") as file:
        head = file.read(64)
        if head[:5] != b"\x7fELF\x02":
            return 0
        at, size, count = *struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54)
        for index in range(count):
            file.seek(at + index * size)
            kind, _, _, address = struct.unpack("<IIQQ", file.read(24))
            if kind == 1:
                return address & ~4095
    return 0


def last_word(hex_lines, size_offset, stack_size):
    """From perf's dump of the record, ".  0010:  c3 75 …": u64 size, then the stack's bytes."""
    at = size_offset + 8 + stack_size - 8
    line, column = divmod(at, 16)
    if line >= len(hex_lines):
        return None
    digits = hex_lines[line].split(":", 1)[1][2:2 + 48].split()
    return int.from_bytes(bytes.fromhex("".join(digits[column:column + 8])), "little")


def number(text):
    return int(text, 16) if text.startswith("0x") else int(text)


def read_facts(perf, path):
    """SampleFacts of every sample that perf script prints, in its order."""
    command = [perf, "script", "-D", "--no-inline", "-F", "comm,tid,time,event,ip,sym,symoff,dso",
               "-i", path]
    maps = PerfMaps()
    facts = []
    hex_lines = []
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        for raw in process.stdout:
            if raw.startswith(b".  "):
                if raw.startswith(b".  0000:"):
                    hex_lines = []
                hex_lines.append(raw[1:].decode())
                continue
            line = raw.decode(errors="replace").rstrip("\n")
            if line.startswith("\t"):
                if facts:
                    facts[-1].frames.append(line)
                continue
            if line.startswith("... ustack") and facts and (match := STACK.match(line)):
                sample = facts[-1]
                sample.stack_size = int(match[1])
                sample.last_word = last_word(hex_lines, int(match[2], 16), sample.stack_size)
            elif "PERF_RECORD_" not in line:
                continue
            elif match := SAMPLE.search(line):
                pid = int(match[1])
                facts.append(SampleFacts(pid, maps.maps.get(pid, ()), maps.programs.get(pid, 0)))
            elif match := MMAP.search(line):
                maps.mmap(int(match[1]), number(match[2]), number(match[3]), number(match[4]),
                          match[5])
            elif match := FORK.search(line):
                maps.fork(int(match[1]), int(match[2]))
            elif match := EXEC.search(line):
                maps.exec(int(match[1]))
    return facts


OUTSIDE = re.compile(r"unwind: access_mem (0x[0-9a-f]+) not inside range (0x[0-9a-f]+)-(0x[0-9a-f]+)")


class Unwinding:
    """Which words outside the dump perf asks for when it unwinds this one sample alone."""

    def __init__(self, perf, path, time_ns):
        time = f"{time_ns // 10**9}.{time_ns % 10**9:09}"
        command = [perf, "script", "-vvvv", "--no-inline", "-F", "ip", "-i", path, "--time",
                   f"{time},{time}"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        text = (done.stderr + done.stdout).decode(errors="replace")
        self.outside = [[int(word, 16) for word in match] for match in OUTSIDE.findall(text)]

    def reads_below(self):
        """Just below the stack pointer: a register whose rule names a slot that is popped already."""
        return any(start - 4096 < address < start for address, start, _ in self.outside)

    def reads_beyond(self):
        return any(end - 8 <= address < end + 2**20 for address, _, end in self.outside)


@functools.cache
def frame_entries(path):
    """[start, end) of every FDE, as readelf lists them."""
    done = subprocess.run(["readelf", "-wF", path], capture_output=True, check=False)
    entries = re.findall(rb"FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", done.stdout)
    return [(int(start, 16), int(end, 16)) for start, end in entries]


def has_frame_entry(path, address):
    return any(start <= address < end for start, end in frame_entries(path))
