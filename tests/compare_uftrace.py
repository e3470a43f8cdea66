#!/usr/bin/env python3
"""Holds our reading and writing of uftrace's recordings against uftrace itself.

usage: compare_uftrace.py STACKREEL [PROGRAM...]

Each program (by default some small ones, compiled here with -pg) is recorded by `uftrace record`.
Then the calls of each thread, in order, with their depths, must be the same in
  uftrace replay of the recording
  stackreel replay of the recording
  uftrace replay of our trace, made of the recording by `convert`, and converted back
Values of calls must be the same in the first and the last of these, but for names of variables that
pointers point to, and of structs, which our format does not have. C++ is recorded without values: uftrace
describes those of `operator new` and `delete` by names that it demangles, and cannot read them itself by others.
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
    "callbacks": """
#include <stdlib.h>
static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static int visit(int n) { return n & 1; }
int count(int (*f)(int), const int *n, int size) { int c = 0; while (size--) c += f(*n++); return c; }
int main(void) {
  int n[64];
  for (int i = 0; i < 64; i++) n[i] = i * 37 % 64;
  qsort(n, 64, sizeof *n, order);
  return count(visit, n, 64) == 0;
}""",
    "signal": """
#include <signal.h>
static volatile int seen;
static int note(int n) { return seen += n; }
static void take(int signal) { note(signal); }
int send(int n) { raise(SIGUSR1); return n; }
int main(void) {
  signal(SIGUSR1, take);
  for (int i = 0; i < 20; i++) send(i);
  return seen == 0;
}""",
    "mutual": """
int odd(unsigned n);
int even(unsigned n) { return n == 0 ? 1 : odd(n - 1); }
int odd(unsigned n) { return n == 0 ? 0 : even(n - 1); }
int ackermann(int m, int n) {
  return m == 0 ? n + 1 : ackermann(m - 1, n == 0 ? 1 : ackermann(m, n - 1));
}
int main(void) { return even(40) + odd(31) + ackermann(2, 3) == 0; }""",
    "variadic": """
#include <stdarg.h>
long sum(int count, ...) {
  va_list rest;
  long s = 0;
  va_start(rest, count);
  while (count--) s += va_arg(rest, int);
  va_end(rest);
  return s;
}
double mean(int count, double first, ...) { return first / count; }
int main(void) { return sum(3, 1, 2, 3) + (long)mean(2, 4.5, 1.0) == 0; }""",
    "tail": """
int last(int n) { return n + 1; }
int second(int n) { return last(n * 2); }
int first(int n) { return n > 0 ? second(n - 1) : last(n); }
int main(void) { int s = 0; for (int i = 0; i < 30; i++) s += first(i); return s == 0; }""",
    "nested": """
static int apply(int (*f)(int), int n) { return f(n); }
int outer(int n) {
  int bias = n;
  int inner(int x) { return x + bias; }
  return apply(inner, 1) + inner(2);
}
int main(void) { return outer(3) + outer(4) == 0; }""",
    "structs": """
struct small { int a, b; };
struct large { long n[8]; };
struct small swap(struct small s) { struct small t = {s.b, s.a}; return t; }
struct large fill(long n) { struct large l; for (int i = 0; i < 8; i++) l.n[i] = n + i; return l; }
long total(struct large l) { long s = 0; for (int i = 0; i < 8; i++) s += l.n[i]; return s; }
int main(void) { struct small s = {1, 2}; return swap(swap(s)).a + total(fill(5)) == 0; }""",
    "frames": """
#include <alloca.h>
#include <string.h>
int on_stack(int n) { char *p = alloca(n); memset(p, n, n); return p[n / 2]; }
int sized(int n) { int a[n]; a[n - 1] = n; return a[n - 1]; }
int large(void) { volatile char a[100000]; a[50000] = 1; return a[50000]; }
long many(long a, long b, long c, long d, long e, long f, long g, long h) { return a + h - b - g + c + d + e + f; }
int main(void) { return on_stack(64) + sized(9) + large() + many(1, 2, 3, 4, 5, 6, 7, 8) == 0; }""",
    "pool": """
#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int next;
static _Thread_local int done;
static int take(void) { pthread_mutex_lock(&mutex); int n = next++; pthread_mutex_unlock(&mutex); return n; }
static int work(int n) { return ++done + n; }
static void *run(void *p) { for (int n; (n = take()) < 200;) work(n); return p; }
int main(void) {
  pthread_t t[3];
  for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, run, 0);
  for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
  return 0;
}""",
    "classes.cc": """
#include <memory>
#include <string>
#include <vector>
namespace shapes {
struct Shape { virtual ~Shape() = default; virtual double area() const = 0; };
struct Square : Shape { double a; explicit Square(double a) : a(a) {} double area() const override { return a * a; } };
struct Circle : Shape { double r; explicit Circle(double r) : r(r) {} double area() const override { return 3 * r * r; } };
}
template <typename T> T twice(T value) { return value + value; }
bool operator<(const shapes::Square& a, const shapes::Square& b) { return a.a < b.a; }
int main() {
  std::vector<std::unique_ptr<shapes::Shape>> all;
  for (int i = 0; i < 5; i++) {
    all.push_back(std::make_unique<shapes::Square>(i));
    all.push_back(std::make_unique<shapes::Circle>(i));
  }
  double sum = 0;
  for (const auto& shape : all) sum += shape->area();
  return twice(std::string("ab")).size() + twice(2) + sum == 0 && shapes::Square(1) < shapes::Square(2);
}""",
    "lambdas.cc": """
#include <algorithm>
#include <functional>
#include <map>
#include <vector>
static int call(const std::function<int(int)>& f, int n) { return f(n); }
int main() {
  std::map<int, int> counts;
  std::vector<int> numbers{5, 3, 9, 1, 7};
  std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return a > b; });
  for (int n : numbers) counts[n] += call([&](int x) { return x + numbers[0]; }, n);
  return counts.size() == 0;
}""",
    "statics.cc": """
#include <string>
struct Named {
  std::string name;
  explicit Named(const char* text) : name(text) {}
  ~Named() { name.clear(); }
};
static Named first("first"), second("second");
Named& lazy() { static Named third("third"); return third; }
int main() { return lazy().name.size() + lazy().name.size() + first.name.size() == 0; }""",
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
        if with_values:
            # What a struct or a variable is called is not in our format.
            rest = re.sub(r"&\w+|0x[0-9a-f]+", "POINTER", re.sub(r"\w*{(\.\.\.)?}", "{...}", rest))
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


def uftrace_calls(folder, with_values=False):
    done = run(["uftrace", "replay", "--no-pager", "--no-event", "--no-comment", "-f", "tid",
                *([] if with_values else ["--no-args", "--demangle=no"]), "-d", folder])
    text = done.stdout
    if b" _Z" in text:
        # By itself uftrace leaves out what templates are of.
        text = run(["c++filt", "-p"], input=text).stdout
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
        programs, cxx = {}, set()
        for path in sys.argv[2:]:
            programs[pathlib.Path(path).name] = path
        for name, source in PROGRAMS.items() if not programs else []:
            stem, _, ending = name.partition(".")
            file = folder / f"{stem}.{ending or 'c'}"
            file.write_text(source)
            for level in ("-O0", "-O2"):
                out = folder / f"{stem}{level}"
                done = run(["g++" if ending else "gcc", "-g", "-pg", level, file, "-o", out,
                            "-lpthread"])
                if done.returncode == 0:
                    programs[out.name] = out
                    if ending:
                        cxx.add(out.name)
                else:
                    print(f"{out.name}: not built: {done.stderr.decode()}")
        for name, path in programs.items():
            for ending, arguments in (("", []), (" with values", ["-a"])):
                if arguments and name in cxx:
                    continue
                results.append(check(stackreel, name + ending.replace(" ", "_"), [str(path)], folder,
                                     arguments))
    if not results or all(result is None for result in results):
        print("skipped: uftrace cannot record here")
        return SKIPPED
    return 0 if all(result is not False for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
