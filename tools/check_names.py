#!/usr/bin/env python3
"""Holds file-local names of one folder apart, so that its files compile as one.

The sanitizer presets compile several files of a folder as one (CMake's unity builds), where two
anonymous namespaces are the same one: a constant, a type, an alias for something else, or a function
of the same parameters may be there once in a folder's sources, and once in its tests.
Folders whose CMakeLists.txt sets CMAKE_UNITY_BUILD or UNITY_BUILD to OFF are left out.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPUS = {"aarch64", "x86_64"}
ANONYMOUS = re.compile(r"^namespace \{\n(.*?)^\}  // namespace\n", re.S | re.M)
CONSTANT = re.compile(r"^(?:static |inline )*(?:constexpr|const) [^=({;]*?\b(k[A-Z]\w*)(?:\[.*?\])*"
                      r"(?: =|\{)", re.M)
TYPE = re.compile(r"^(?:struct|class|union|enum class|enum) (?:\[\[.*?\]\] )?(\w+)[^;()]*?\{", re.M)
ALIAS = re.compile(r"^(?:template <[^\n]*>\n)?using (\w+) = ([^;]*);", re.M)
# A name that no class qualifies, parameters, and the body's or the initializers' beginning.
FUNCTION = re.compile(r"^(?=\w)(?!TEST|using|namespace|struct|class|enum|return|template)[\w:<>,&*\[\] ]*?"
                      r"[ &*](\w+)(\([^;{}]*?\)) (?:noexcept )?\{", re.M)


def parameters(text):
    """Their types, as far as telling functions apart takes: names and default arguments gone."""
    types = []
    for one in re.split(r",(?![^<(]*[>)])", text.strip()[1:-1]):
        one = re.sub(r"/\*.*?\*/|=.*", "", " ".join(one.split())).strip()
        types.append(re.sub(r"(?<=[\w>&*]) ?\b\w+$", "", one) if re.search(r"[ &*>]\w+$", one) else one)
    return ", ".join(types)


def names(text):
    for part in ANONYMOUS.findall(text):
        # Of a template's parameters nothing can be said here.
        part = re.sub(r"^template <.*?>\n(?!using)[^\n]*\n", "\n", part, flags=re.M)
        for pattern in (CONSTANT, TYPE):
            yield from pattern.findall(part)
        for name, what in ALIAS.findall(part):
            yield f"{name} = {' '.join(what.split())}"
        for name, text_of_parameters in FUNCTION.findall(part):
            yield f"{name}({parameters(text_of_parameters)})"


def sources(folder):
    """Folder's sources and its tests. What lies in a folder with a CMakeLists.txt is that one's."""
    inner = [path.parent for path in folder.glob("*/**/CMakeLists.txt")]
    for path in sorted(folder.rglob("*.cc")):
        if not any(path.is_relative_to(one) for one in inner):
            yield path


def clashes(folder):
    where = collections.defaultdict(list)
    for path in sources(folder):
        for name in set(names(path.read_text())):
            # The same alias of the same is no clash; one of another is a name of its own.
            bare = name.split(" = ")[0]
            where[(path.name.endswith("_test.cc"), bare)].append((path, name))
    for (_, bare), places in sorted(where.items()):
        # Of the files of several CPUs only one's are compiled.
        cpus = [path.parent.name for path, _ in places]
        if len(set(cpus)) == len(cpus) and CPUS.issuperset(cpus):
            continue
        is_alias = all(" = " in name for _, name in places)
        if len(places) > 1 and not (is_alias and len({name for _, name in places}) == 1):
            yield f"{bare}: " + ", ".join(str(path.relative_to(ROOT)) for path, _ in places)


def main():
    found = []
    for lists in sorted(ROOT.glob("src/*/CMakeLists.txt")):
        if not re.search(r"UNITY_BUILD OFF", lists.read_text()):
            found += clashes(lists.parent)
    for line in found:
        print(f"names: {line}")
    print("names: no two files of a folder clash" if not found else f"names: {len(found)} clashes")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
