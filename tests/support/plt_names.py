"""Names of PLT stubs as objdump has them: by the slot that a stub jumps through."""

import bisect
import collections
import functools
import re
import subprocess

# "*ABS*+0x9a2d0@plt": a stub of a function chosen at run time by the resolver at that address.
RESOLVER = re.compile(r"^\*ABS\*\+0x([0-9a-f]+)@plt$")
STUB = re.compile(r"^([0-9a-f]+) <(.*)>:$")
SECTIONS = ["-j", ".plt", "-j", ".plt.sec", "-j", ".plt.got"]


class PltNames:
    def __init__(self, path):
        done = subprocess.run(["objdump", "-d", *SECTIONS, path], capture_output=True, check=False)
        stubs = [STUB.match(line) for line in done.stdout.decode(errors="replace").splitlines()]
        self.stubs = sorted((int(stub[1], 16), stub[2]) for stub in stubs if stub)

        self.resolvers = collections.defaultdict(set)
        for symbols in ([], ["-D"]):
            done = subprocess.run(["nm", *symbols, path], capture_output=True, check=False)
            for line in done.stdout.decode(errors="replace").splitlines():
                address, _, name = line.partition(" i ")
                if name:
                    self.resolvers[int(address, 16)].add(name)

    def is_name_at(self, name, address):
        at = bisect.bisect_right(self.stubs, (address, "\x7f"))
        stub = self.stubs[at - 1][1] if at else ""
        if match := RESOLVER.match(stub):
            return name.removesuffix("@plt") in self.resolvers[int(match[1], 16)]
        return stub == name


@functools.cache
def plt_names(path):
    return PltNames(path)
