#!/usr/bin/env python3
"""Holds our reading and writing of uftrace's recordings against uftrace itself.

usage: compare_uftrace.py STACKREEL [PROGRAM...]

Each program (by default some small ones, compiled here with -pg) is recorded by `uftrace record`.
Then the calls of each thread, in order, with their depths, must be the same in
  uftrace replay of the recording
  stackreel replay of the recording
  uftrace replay of our trace, made of the recording by `convert`, and converted back
Values of calls must be the same in the first and the last of these.
uftrace shows a forked child's calls inside of those of its parent, we from its first one on: depths are
counted from the least of a thread. It also knows longjmp by its name and takes calls off by itself: of
such a program what we wrote is not held against it.
Exit code 77 (skipped) where uftrace or gcc is missing or cannot record."""

import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
LINE = re.compile(r"^\s*\[\s*(\d+)\] \| ( *)(.*)$")

PROGRAMS = {
    "nest": """
int leaf(int n) { return n * 2; }
int mid(int n) { int s = 0; for (int i = 0; i < n; i++) s += leaf(i); return s; }
int fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }
int main(void) { return mid(50) + fact(20) == 3; }""",
    "values": """
#include <string.h>
long add(long a, int b) { return a + b; }
const char *name(const char *s, double d) { return d > 1 ? s : "none"; }
char letter(char c) { return c; }
int main(void) { return add(-5, 7) + strlen(name("hello", 2.5)) + letter('x') == 1; }""",
    "types": """
enum color { RED, GREEN = 5, NONE = -1 };
struct pair { int a; double b; };
enum color paint(enum color c, unsigned long n, short s) { return c; }
float half(float a, int b, double c) { return a / 2; }
const char *pick(const char *a, char *b, void *c) { return a; }
int call(int (*f)(int), int n) { return f(n); }
int twice(int n) { return n * 2; }
int first(struct pair p, int n) { return p.a + n; }
int main(void) {
  struct pair p = {1, 2.5};
  return paint(NONE, 123456789012345, -3) + paint(GREEN, 1, 2) + half(3, 4, 5.5) + (pick(0, "x", &p) == 0) +
         (pick("a rather long text, longer than what uftrace keeps of a text, which is about "
               "a hundred bytes or so", "", 0) == 0) + call(twice, 3) + first(p, 4) == 1;
}""",
    "threads": """
#include <pthread.h>
static int leaf(int n) { return n + 1; }
static void *run(void *p) { int s = 0; for (int i = 0; i < 200; i++) s = leaf(s); return p; }
int main(void) {
  pthread_t t[4];
  for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, run, 0);
  for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
  return 0;
}""",
    "fork": """
#include <sys/wait.h>
#include <unistd.h>
int work(int n) { return n * 3; }
int child(void) { return work(1) + work(2) == 0; }
int main(void) { if (fork() == 0) _exit(child()); wait(0); return work(3) == 1; }""",
    "longjmp": """
#include <setjmp.h>
jmp_buf place;
void deep(int n) { if (n == 0) longjmp(place, 1); deep(n - 1); }
int after(void) { return 1; }
int main(void) { if (setjmp(place) == 0) deep(5); return after() == 0; }""",
    "exec": """
#include <stdlib.h>
#include <unistd.h>
int before(int n) { return n; }
int after(void) { return 2; }
int main(int argc, char **argv) {
  if (argc > 1) return after() == 1;
  before(1);
  execl(argv[0], argv[0], "again", (char *)0);
  return 1;
}""",
}


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
        if with_values and (result := re.search(r"[)}] = (.*);", rest)):
            results[int(tid)].append(result.group(1))
        if rest.startswith(("}", "/*")) or not re.search(r"[({;]", rest):
            continue
        if with_values:
            # What a struct is called is not in our format.
            name = re.sub(r"\w*{\.\.\.}", "{...}", re.sub(r"\)( = .*)?(;| {)$", ")", rest))
        else:
            name = re.sub(r"\(.*", "", rest)
        threads[int(tid)].append((len(indent) // 2, name))
    for tid, thread in threads.items():
        least = min(depth for depth, _ in thread)
        threads[tid] = [(depth - least, name) for depth, name in thread]
    for tid, values in results.items():
        threads[tid].append(sorted(values))
    return dict(threads)


def uftrace_calls(folder, with_values=False):
    done = run(["uftrace", "replay", "--no-pager", "--no-event", "--no-comment", "-f", "tid",
                *([] if with_values else ["--no-args"]), "-d", folder])
    return calls(done.stdout, with_values)


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


def check(stackreel, name, program, folder, arguments):
    recording, trace, back = (folder / f"{name}.{end}" for end in ("uftrace", "trace", "back"))
    run(["uftrace", "record", "--no-pager", *arguments, "-d", recording, *program])
    expected = uftrace_calls(recording)
    total = sum(len(thread) for thread in expected.values())
    if total == 0:
        print(f"{name}: uftrace recorded nothing")
        return None
    ok = compare(name, "our replay", expected, our_calls(stackreel, recording))
    for source, target, kind in ((recording, trace, "stackreel"), (trace, back, "uftrace")):
        done = run([stackreel, "convert", "-q", f"--to={kind}", "-i", source, "-o", target])
        if done.returncode != 0:
            print(f"{name}: convert --to={kind}: {done.stderr.decode()}")
            return False
    ok = compare(name, "the converted trace", expected, our_calls(stackreel, trace)) and ok
    jumps = any("longjmp" in function for thread in expected.values() for _, function in thread)
    if not jumps:
        ok = compare(name, "uftrace's replay of it", expected, uftrace_calls(back)) and ok
        # Of a fork, the end in the child has no begin there.
        if not name.startswith("fork"):
            ok = compare(name, "what uftrace shows of values", uftrace_calls(recording, True),
                         uftrace_calls(back, True)) and ok
    print(f"{name}: {len(expected)} threads, {total} calls: {'same' if ok else 'DIFFERENT'}")
    return ok


def main():
    stackreel = pathlib.Path(sys.argv[1]).resolve()
    if not shutil.which("uftrace") or not shutil.which("gcc"):
        print("skipped: no uftrace or no gcc")
        return SKIPPED
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        programs = {}
        for path in sys.argv[2:]:
            programs[pathlib.Path(path).name] = path
        for name, source in PROGRAMS.items() if not programs else []:
            (folder / f"{name}.c").write_text(source)
            for level in ("-O0", "-O2"):
                out = folder / f"{name}{level}"
                done = run(["gcc", "-g", "-pg", level, folder / f"{name}.c", "-o", out, "-lpthread"])
                if done.returncode == 0:
                    programs[out.name] = out
        for name, path in programs.items():
            for ending, arguments in (("", []), (" with values", ["-a"])):
                results.append(check(stackreel, name + ending.replace(" ", "_"), [str(path)], folder,
                                     arguments))
    if not results or all(result is None for result in results):
        print("skipped: uftrace cannot record here")
        return SKIPPED
    return 0 if all(result is not False for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
