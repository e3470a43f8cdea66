#!/usr/bin/env python3
"""Holds our reading and writing of uftrace's recordings against uftrace itself.

usage: compare_uftrace.py [--all] [--only=GLOB] STACKREEL [PROGRAM...]

  compare_uftrace.py --all build/release/src/cli/stackreel      # all programs, all builds: minutes
  compare_uftrace.py --all --only='throws*' build/release/src/cli/stackreel

Each program of programs/calls is built with -pg and run, traced and not: what it prints, and its
exit code, must be the same, and 0. By default (and in ctest) some of them are built, by gcc; with
--all all of them, by gcc and by clang. PROGRAM is a program that is built already, with -pg.

1. `uftrace record`. The calls of each thread, in order, with their depths, must be the same in
     uftrace replay of the recording
     stackreel replay of the recording
     uftrace replay of our trace, made of the recording by `convert`, and converted back
   Values of calls must be the same in the first and the last of these, but for names of variables
   that pointers point to, and of structs, which our format does not have. C++ is recorded without
   values: uftrace describes those of `operator new` and `delete` by names that it demangles, and
   cannot read them itself by others.
2. `stackreel trace -P .`. The calls of each thread must be the same in
     stackreel replay of the trace
     uftrace replay of the trace, converted
     uftrace replay of what uftrace recorded of the same program, of those functions that it records
     (it knows none of start-up's)

uftrace shows a forked child's calls inside of those of its parent, we from its first one on: depths
are counted from the least of a thread. Other differences that are no fault of ours stand in
DIFFERENCES, with their reasons. Exit code 77 (skipped) where uftrace or gcc is missing or cannot
record."""

import argparse
import collections
import fnmatch
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
LINE = re.compile(r"^\s*\[\s*(\d+)\] \| ( *)(.*)$")
SOURCES = pathlib.Path(__file__).resolve().parent / "programs" / "calls"

# What is run by default.
FEW = ["callbacks.c", "classes.cc", "contexts.c", "coroutines.cc", "exec.c", "fork.c", "frames.c",
       "longjmp.c", "mutual.c", "nested.c", "parser.c", "plugins.c", "pool.c", "signal.c", "tail.c",
       "throws.cc", "types.c", "unwinds.cc", "values.c"]
# Nothing inlined, or -O2 would leave few calls. Tail calls, and copies for constant arguments, are
# made.
LEVELS = {"-O0": ["-O0"], "-O2": ["-O2", "-fno-inline"]}

# What ends under uftrace 0.13, and is only traced by us.
ENDED_BY_UFTRACE = {
    "contexts": "a library call that returns on another stack: invalid dynsym idx, or SIGSEGV",
    "throws": "an exception that is thrown while another is handled: std::terminate",
}
FORKED = {
    "what uftrace shows of values": "an end in the child has no begin there, and becomes no call",
    "what both record": "ours has the parent's open calls, uftrace's begins within them",
}
SHARED_WORK = {"what both record": "which thread does what is another each time"}
# Program → comparison → why it is not made.
DIFFERENCES = {
    "exec": {"what both record": "uftrace's has what was open around what was executed"},
    "fork": FORKED,
    "fork_pipes": FORKED,
    "longjmp": {
        "uftrace's replay of it": "uftrace ends calls itself at longjmp; we wrote their ends",
        "what uftrace shows of values": "the same",
        "what both record": "uftrace knows of the jump by longjmp, which is left out here",
    },
    "pool": SHARED_WORK,
    "queue": SHARED_WORK,
}
# (program, compiler) that are not for each other.
NOT_BUILT = {("nested", "clang")}  # functions in functions are GCC's


def run(command, **options):
    return subprocess.run(command, capture_output=True, timeout=120, check=False, **options)


def may_trace(stackreel, folder):
    """Whether programs may be traced here: what fails afterwards is a fault. Says why not."""
    done = run([stackreel, "trace", "-P", "main", "-o", folder / "none", "--", "/bin/true"])
    refused = re.search(rb"(command cannot|may not) be traced|only x86-64", done.stderr)
    if refused:
        print(f"skipped: {done.stderr.decode()}")
    return not refused


def calls(text, with_values=False):
    """The calls of each thread: [(depth, name), …]; names with all that is shown of the call."""
    threads = collections.defaultdict(list)
    results = collections.defaultdict(list)
    for line in text.decode("utf-8", "replace").splitlines():
        found = LINE.match(line)
        if not found:
            continue
        tid, indent, rest = found.groups()
        if with_values:
            # What a struct or a variable is called is not in our format.
            rest = re.sub(r"\w*{(\.\.\.)?}", "{...}", rest)
            rest = re.sub(r"&[\w.]+|0x[0-9a-f]+", "POINTER", rest)
        if with_values and (result := re.search(r"[)}] = (.*);", rest)):
            results[int(tid)].append(result.group(1))
        if rest.startswith(("}", "/*")) or not re.search(r"[({;]", rest):
            continue
        if with_values:
            name = re.sub(r"\)( = .*)?(;| {)$", ")", rest)
        else:
            name = re.sub(r"\(.*", "", rest)
        threads[int(tid)].append((len(indent) // 2, name))
    for tid, thread in threads.items():
        least = min(depth for depth, _ in thread)
        threads[tid] = [(depth - least, name) for depth, name in thread]
    for tid, values in results.items():
        threads[tid].append(sorted(values))
    return dict(threads)


def uftrace_calls(folder, with_values=False, options=()):
    done = run(["uftrace", "replay", "--no-pager", "--no-event", "--no-comment", "-f", "tid",
                *([] if with_values else ["--no-args", "--demangle=no"]), *options, "-d", folder])
    text = done.stdout
    if b" _Z" in text:
        # By itself uftrace leaves out what templates are of.
        text = run(["c++filt", "-i", "-p"], input=text).stdout
    return calls(text, with_values)


def our_calls(stackreel, folder):
    done = run([stackreel, "replay", "--no-comment", "-f", "tid", "--no-args", "-i", folder])
    if done.returncode != 0:
        print(done.stderr.decode())
    return calls(done.stdout)


def compare(name, what, expected, got):
    if expected == got:
        return True
    print(f"{name}: {what} differs: threads {sorted(expected)} and {sorted(got)}")
    for tid in sorted(set(expected) | set(got)):
        a, b = expected.get(tid, []), got.get(tid, [])
        for i in range(max(len(a), len(b))):
            if a[i:i + 1] != b[i:i + 1]:
                print(f"  thread {tid}, call {i} of {len(a)} and {len(b)}: "
                      f"{a[i:i + 3]} and {b[i:i + 3]}")
                break
    return False


def only_of(threads, functions):
    """The calls of those functions, as if the others had been inlined; the threads in an order that
    does not depend on their ids."""
    kept = []
    for thread in threads.values():
        around, mine = [], []  # around: whether each call that is open is one of those functions
        for depth, name in thread:
            del around[depth:]
            # Of what began above the least depth nothing is known.
            around += [False] * (depth - len(around))
            if name in functions:
                mine.append((sum(around), name))
            around.append(name in functions)
        if mine:
            kept.append(mine)
    return dict(enumerate(sorted(kept)))


class Comparison:
    """Of one program that is built."""

    def __init__(self, stackreel, program, path, folder):
        self.stackreel, self.program, self.path, self.folder = stackreel, program, path, folder
        self.name = path.name
        self.plain = run([path], cwd=folder)
        self.failed = self.calls = 0
        self.passed_over = {}  # in the order of the comparisons
        if self.plain.returncode != 0:
            self.fail(f"exit code {self.plain.returncode}: {self.plain.stdout.decode()}")

    def fail(self, what):
        self.failed += 1
        print(f"{self.name}: {what}")

    def same(self, what, expected, got):
        if what in DIFFERENCES.get(self.program, {}):
            self.passed_over[what] = True
        elif not compare(self.name, what, expected, got):
            self.failed += 1

    def record(self, what, command):
        try:
            done = run([*command, self.path], cwd=self.folder)
        except subprocess.TimeoutExpired:
            self.fail(f"{what}: does not end")
            return
        if done.stdout != self.plain.stdout or done.returncode != self.plain.returncode:
            self.fail(f"{what}: exit code {done.returncode}: {done.stdout.decode()} "
                      f"{done.stderr.decode()}")

    def convert(self, kind, source, target):
        done = run([self.stackreel, "convert", "-q", f"--to={kind}", "-i", source, "-o", target])
        if done.returncode != 0:
            self.fail(f"convert --to={kind}: {done.stderr.decode()}")

    def of_uftrace(self, ending, *arguments):
        """False if it recorded nothing."""
        recording, trace, back = (self.folder / f"{self.name}{ending}.{kind}"
                                  for kind in ("uftrace", "trace", "back"))
        self.record("uftrace", ["uftrace", "record", "--no-pager", *arguments, "-d", recording])
        expected = uftrace_calls(recording)
        self.calls += sum(len(thread) for thread in expected.values())
        if not expected:
            return False
        self.same("our replay", expected, our_calls(self.stackreel, recording))
        self.convert("stackreel", recording, trace)
        self.convert("uftrace", trace, back)
        self.same("the converted trace", expected, our_calls(self.stackreel, trace))
        self.same("uftrace's replay of it", expected, uftrace_calls(back))
        if arguments:
            self.same("what uftrace shows of values", uftrace_calls(recording, True),
                      uftrace_calls(back, True))
        return True

    def of_ours(self):
        trace, back = (self.folder / f"{self.name}.{kind}" for kind in ("ours", "ours.back"))
        library = pathlib.Path(f"{self.path}.so")
        patterns = ["-P", ".", *(["-P", f".@{library.name}"] if library.exists() else [])]
        self.record("stackreel", [self.stackreel, "trace", "--follow", "--traps", *patterns, "-o",
                                  trace, "--"])
        ours = our_calls(self.stackreel, trace)
        self.calls += sum(len(thread) for thread in ours.values())
        self.convert("uftrace", trace, back)
        self.same("uftrace's replay of our trace", ours, uftrace_calls(back))
        return ours

    def of_both(self, ours):
        recording = self.folder / f"{self.name}.uftrace"
        theirs = uftrace_calls(recording, options=["--no-libcall"])
        functions = {name for thread in theirs.values() for _, name in thread}
        self.same("what both record", only_of(theirs, functions), only_of(ours, functions))

    def run(self, with_values, with_ours):
        """None if uftrace recorded nothing, else whether all is the same."""
        ended = ENDED_BY_UFTRACE.get(self.program)
        if not ended:
            if not self.of_uftrace(""):
                print(f"{self.name}: uftrace recorded nothing")
                return None
            if with_values:
                self.of_uftrace("_with_values", "-a")
        if with_ours:
            ours = self.of_ours()
            if not ended:
                self.of_both(ours)
        verdict = "DIFFERENT" if self.failed else "same"
        print(f"{self.name}: {self.calls} calls: {verdict}"
              + "".join(f"; passed over: {what}" for what in self.passed_over)
              + ("; uftrace ends it" if ended else ""), flush=True)
        return not self.failed


def build(source, compiler, level, folder):
    """The program, or None if it is not built. It is linked without -pg: gprof's own start sets a
    timer whose signal ends what is executed later."""
    cxx = source.suffix == ".cc"
    compile_with = {"gcc": "g++" if cxx else "gcc", "clang": "clang++" if cxx else "clang"}[compiler]
    options = [*(["-std=c++20"] if cxx else []), "-w", "-g", "-pg", *LEVELS[level]]
    path = folder / f"{source.stem}-{compiler}{level}"
    commands = [[compile_with, *options, "-c", source, "-o", f"{path}.o"],
                [compile_with, f"{path}.o", "-o", path, "-lpthread", "-lm", "-ldl"]]
    if b"#ifdef LIBRARY" in source.read_bytes():
        commands.append([compile_with, *options, "-DLIBRARY", "-fPIC", "-shared", source, "-o",
                         f"{path}.so"])
    for command in commands:
        done = run(command)
        if done.returncode != 0:
            print(f"{path.name}: not built: {done.stderr.decode()}")
            return None
    return path


def programs(options, folder):
    """(name of the program, path, whether values are looked at) of each that is to be compared."""
    if options.program:
        for path in options.program:
            yield path.stem, path.resolve(), True
        return
    compilers = [name for name in ("gcc", "clang")[:2 if options.all else 1] if shutil.which(name)]
    for source in sorted(SOURCES.iterdir()):
        if not fnmatch.fnmatch(source.name, options.only):
            continue
        if not options.all and source.name not in FEW:
            continue
        for compiler in compilers:
            for level in LEVELS if (source.stem, compiler) not in NOT_BUILT else []:
                path = build(source, compiler, level, folder)
                if path:
                    yield source.stem, path, source.suffix == ".c"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="*")
    parser.add_argument("stackreel", type=pathlib.Path)
    parser.add_argument("program", type=pathlib.Path, nargs="*")
    options = parser.parse_args()
    if not shutil.which("uftrace") or not shutil.which("gcc"):
        print("skipped: no uftrace or no gcc")
        return SKIPPED
    stackreel = options.stackreel.resolve()
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        with_ours = may_trace(stackreel, folder)
        for program, path, with_values in programs(options, folder):
            comparison = Comparison(stackreel, program, path, folder)
            results[path.name] = comparison.run(with_values, with_ours)
    if all(result is None for result in results.values()):
        print("skipped: uftrace cannot record here")
        return SKIPPED
    wrong = [name for name, result in results.items() if result is False]
    print(f"{len(results)} builds, {len(wrong)} different: {' '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
