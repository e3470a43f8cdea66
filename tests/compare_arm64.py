#!/usr/bin/env python3
"""Call chains of arm64 recordings with pointer authentication against what the programs do.

usage: compare_arm64.py [--no-mask | --kernel-mask] STACKREEL [CORPUS [DATA]]
       (CORPUS: ../shared/corpus, or $STACKREEL_CORPUS)

Each recording in CORPUS/arm64/data was made by perf on a kernel with pointer authentication; no mask
is inside. A chain is right if every function of the program was called by one that calls it, deep
recursions have their depth, and the last frame is where a thread begins; where the dump was too
small, the chain says so and is right as far as it goes. Beside it stands how many chains of perf's
own output (CORPUS/arm64/script) pass the same test. At least 99.9 % have to be right.
DATA is a folder with other recordings of the same programs, PROGRAM.*.data, to be looked at instead.
They were made by Stackreel, so that the masks used come from where it wrote them: of a process that
began while recording from the recorder's CPU, of one that ran before from the process's record.
--no-mask takes the masks away first, by a record in each recording that says of each process that no
bit is a code: this shows what is lost without, and fails if that is not most of the signed chains.
--kernel-mask takes them away likewise, and adds what a kernel with PTR_AUTH records says: then all is
right again."""
import collections
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

# program: callee → callers. Names are without template arguments and parameters.
CALLERS = {
    "deep": {"leaf_burn": ["pre_leaf"], "pre_leaf": ["rec"], "rec": ["rec", "level3"],
             "level3": ["level2"], "level2": ["level1"], "level1": ["main"]},
    "cxx": {"slow_less": ["sort_work", "std::"], "std::__insertion_sort": ["std::", "sort_work"],
            "std::__introsort_loop": ["std::", "sort_work"], "sort_work": ["app::Engine::run"],
            "Poly::area": ["Poly::area", "std::_Function_handler::_M_invoke"],
            "std::_Function_handler::_M_invoke": ["via_function"],
            "via_function": ["app::Engine::run"], "thrower": ["thrower", "catcher"],
            "catcher": ["app::Engine::run"], "map_work": ["app::Engine::run"],
            "app::Engine::run": ["main"]},
    "threads": {**{f"tA_{k}": [f"worker_{k}"] for k in range(4)},
                **{f"tB_{k}": [f"tB_{k}", f"tA_{k}"] for k in range(4)},
                "tburn": ["tB_"], **{f"worker_{k}": ["libc.so.6+"] for k in range(4)}},
    "keys": {"kburn": ["inner_plain2", "inner_on"], "inner_plain2": ["inner_plain"],
             "inner_plain": ["toggle"], "inner_on": ["toggle"], "toggle": ["mid_signed_b"],
             "mid_signed_b": ["outer_signed"], "outer_signed": ["main"]},
    "sig": {"hburn": ["h2"], "h2": ["handler"], "handler": ["[vdso]+"], "work2": ["work"],
            "work": ["main"]},
    "lib": {"lib_burn": ["cmp"], "cmp": ["libc.so.6+"], "callback": ["lib_inner"],
            "lib_inner": ["lib_entry"], "lib_entry": ["go"], "go": ["main"]},
}
COMMON = {"main": ["libc.so.6+0x27744", "__libc_start_call_main"],
          "libc.so.6+0x27744": ["__libc_start_main"], "__libc_start_main": ["_start"],
          "__libc_start_main_impl": ["_start"], "libc.so.6+0x82030": ["libc.so.6+0xebf5c"]}
# Where threads begin: the program, libc's thread_start, ld.so's start.
ROOTS = {"_start", "libc.so.6+0xebf5c", "ld-linux-aarch64.so.1+0x1ae54",
         "ld-linux-aarch64.so.1+0x1ae78"}
ROOT_AS_SAMPLED = "ld-linux-aarch64.so.1+0x1ae40"
# Not the program's frames: frame-pointer chains of a build without frame pointers.
NOT_COMPARED = {"deep.pacleaf.fp"}
BEGAN_LATER, RAN_BEFORE, NOBODY = "the recorder's CPU", "the process's record", "the highest mapping"
KERNEL = "the kernel"
AS_RECORDED, NO_MASK, KERNEL_MASK = "", "--no-mask", "--kernel-mask"
MASK_48 = 0x007f000000000000  # of the kernel that the recordings were made on
LEAST = 0.999


def plain(symbol):
    """Without template arguments, parameters and offset."""
    symbol = re.sub(r"\+0x[0-9a-f]+$", "", symbol)
    while True:
        shorter = re.sub(r"<[^<>]*>|\([^()]*\)", "", symbol)
        if shorter == symbol:
            return symbol
        symbol = shorter


def name(symbol, dso, offset):
    return plain(symbol) if symbol else f"{dso.rsplit('/', 1)[-1]}+{offset:#x}"


def is_right(program, chain, cut):
    callers = {**CALLERS[program], **COMMON}
    for callee, caller in zip(chain, chain[1:]):
        if callee in callers and not any(caller == c or (c[-1:] in ":_+" and caller.startswith(c))
                                         for c in callers[callee]):
            return False
    if cut:
        return True
    if chain[-1] not in ROOTS and chain != [ROOT_AS_SAMPLED]:
        return False
    if program == "deep" and chain[0] in ("leaf_burn", "pre_leaf") and chain.count("rec") != 16:
        return False
    if program == "threads" and chain[0] == "tburn":
        k = int(chain[1][3:])
        return chain.count(f"tB_{k}") == 2 * k + 1
    return True


def our_chains(stackreel, data, symbols, masks):
    """Counts in `masks` how many samples had which mask and source, by comm."""
    run = subprocess.run(
        [stackreel, "script", "--no-inline", "--format=json", "--show-masks", "--symfs", symbols,
         "-i", data],
        env={**os.environ, "PERF_BUILDID_DIR": symbols, "DEBUGINFOD_URLS": ""},
        check=True, stdout=subprocess.PIPE, text=True)
    for line in run.stdout.splitlines():
        sample = json.loads(line)
        if "mask_source" in sample:
            masks[sample["comm"], sample["insn_mask"], sample["mask_source"]] += 1
        chain = [name(frame.get("sym", ""), frame.get("dso", "?"),
                      int(frame.get("dso_offset", "0"), 16))
                 for frame in sample["frames"] if not frame.get("kernel") and
                 frame.get("dso") != "[kernel.kallsyms]"]
        yield sample["comm"], chain, sample.get("stack_end") == "dump exhausted"


def no_bits(pid, time):
    """The side-band record (docs/file-format.md) that says "no bits"."""
    return struct.pack("<IHHQQIIIIQQQQII", 78, 0, 80, 60000, 0, 1, 1, pid, pid, time, 0, 0, 0, 1, 0)


def ptr_auth(pid, time, attr, event_id):
    """The kernel's record, with the trailer that the event has (linux/perf_event.h)."""
    sample_type, = struct.unpack_from("<Q", attr, 24)
    trailer = b"".join(value for bit, value in (
        (1, struct.pack("<II", pid, pid)), (2, struct.pack("<Q", time)),
        (6, struct.pack("<Q", event_id)), (9, struct.pack("<Q", event_id)), (7, bytes(8)),
        (16, struct.pack("<Q", event_id))) if sample_type >> bit & 1)
    return struct.pack("<IHHIIQQQ", 23, 0, 40 + len(trailer), pid, pid, 0x1f, MASK_48,
                       MASK_48) + trailer


def with_masks(stackreel, data, copy, way):
    """Writes `data` with records that say from each process's first sample on which bits are a code:
    none, and then, for KERNEL_MASK, the right ones as the kernel says them. Gives False for a pipe,
    which has no header to tell of the records."""
    content = bytearray(data.read_bytes())
    header_size, attr_size, attrs, _, data_offset, data_size = struct.unpack_from("<6Q", content, 8)
    if header_size < 104:
        return False
    run = subprocess.run([stackreel, "script", "--no-inline", "--format=json", "-i", data],
                         check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    first = {}
    for sample in map(json.loads, run.stdout.splitlines()):
        first[sample["pid"]] = min(sample["time_ns"], first.get(sample["pid"], 1 << 64))
    records = b"".join(no_bits(pid, time) for pid, time in first.items())
    if way == KERNEL_MASK:
        flags, = struct.unpack_from("<Q", content, attrs + 40)
        struct.pack_into("<Q", content, attrs + 40, flags | 1 << 40)
        ids, = struct.unpack_from("<Q", content, attrs + attr_size - 16)
        event_id, = struct.unpack_from("<Q", content, ids)
        attr = content[attrs:attrs + attr_size]
        records += b"".join(ptr_auth(pid, time, attr, event_id) for pid, time in first.items())
    # All sections that lie behind the records move: the table of features begins there.
    end = data_offset + data_size
    features = sum(bin(byte).count("1") for byte in content[72:104])
    table = bytearray(content[end:end + 16 * features])
    for at in range(0, len(table), 16):
        struct.pack_into("<Q", table, at, struct.unpack_from("<Q", table, at)[0] + len(records))
    head = bytearray(content[:data_offset])
    struct.pack_into("<Q", head, 48, data_size + len(records))
    copy.write_bytes(bytes(head) + records + content[data_offset:end] + bytes(table) +
                     content[end + len(table):])
    return True


def perf_chains(text):
    """The same of perf's text, which has the return addresses that it unwound one lower."""
    unwound = 0 if text.stem.endswith(".fp") else 1
    if not text.exists():
        return
    for block in text.read_text(errors="replace").split("\n\n"):
        lines = block.strip("\n").split("\n")
        if not lines[0]:
            continue
        chain = []
        for n, line in enumerate(lines[1:]):
            frame = re.match(r"\s*([0-9a-f]+) (.*) \((.*)\)$", line)
            if not frame or frame[3].startswith("[kernel"):
                continue
            symbol = "" if frame[2] == "[unknown]" else frame[2]
            chain.append(name(symbol, frame[3], int(frame[1], 16) + (unwound if n else 0)))
        yield lines[0].split()[0], chain, False


def count(program, chains):
    right = total = 0
    wrong = collections.Counter()
    for comm, chain, cut in chains:
        if not chain or not (comm.startswith(program) or program in ("threads", "lib")):
            continue  # kernel only, or (in a recording of the machine) another program
        total += 1
        if is_right(program, chain, cut):
            right += 1
        else:
            wrong[" < ".join(chain)] += 1
    return right, total, wrong


def masks_are_right(recording, made_by_us, masks, way):
    """Says which there were, and whether they come from where they should."""
    for (comm, mask, source), samples in sorted(masks.items()):
        if made_by_us and recording.startswith("sys."):
            print(f"    mask of {comm}: {mask} from {source} ({samples} samples)")
    sources = {source for _, _, source in masks}
    if way == KERNEL_MASK:  # in a recording of the machine, some execute another program later
        return sources == {KERNEL} or (recording.startswith("sys.") and
                                       sources == {KERNEL, NOBODY})
    if not made_by_us:
        return sources == {NOBODY}
    if not recording.startswith("sys."):
        return sources == {BEGAN_LATER}
    # Programs that ran before: one like the program that is recorded, one of 32 bits.
    return (sources <= {BEGAN_LATER, RAN_BEFORE} and
            {source for comm, _, source in masks if comm == "deep.pacleaf"} ==
            {BEGAN_LATER, RAN_BEFORE} and
            {(mask, source) for comm, mask, source in masks if comm == "loop32"} ==
            {("0x0", RAN_BEFORE)})


def link_files(arm64, folder):
    """Where the recordings say that binaries are, and by build-id (pipes have none)."""
    for path in (arm64 / "guest").iterdir():
        if path.is_dir():
            (folder / path.name).symlink_to(path.resolve())
    (folder / "share").mkdir()
    (folder / "share" / "bin").symlink_to((arm64 / "bin").resolve())
    for line in (arm64 / "build-ids.txt").read_text().splitlines():
        build_id, path = line.split(maxsplit=1)
        entry = folder / ".build-id" / build_id[:2] / build_id[2:]
        entry.mkdir(parents=True, exist_ok=True)
        kind = "debug" if path.endswith(".debug") else "elf"
        if not (entry / kind).exists():
            (entry / kind).symlink_to((arm64 / path).resolve())


def compare(stackreel, arm64, folder_of_data, way):
    """Prints a line for each recording; gives the sums, and the recordings with wrong masks."""
    sums = collections.Counter()
    wrong_masks = []
    made_by_us = folder_of_data != arm64 / "data"
    with tempfile.TemporaryDirectory() as folder:
        symbols = pathlib.Path(folder)
        link_files(arm64, symbols)
        for data in sorted(folder_of_data.glob("*.data")):
            recording = data.name.removesuffix(".data")
            if recording in NOT_COMPARED:
                continue
            if way != AS_RECORDED:
                if not with_masks(stackreel, data, symbols / "masks.data", way):
                    continue
                data = symbols / "masks.data"
            program = "deep" if recording.startswith("sys.") else recording.split(".")[0]
            masks = collections.Counter()
            ours = count(program, our_chains(stackreel, data, folder, masks))
            perf = count(program, [] if made_by_us else
                         perf_chains(arm64 / "script" / f"{recording}.txt"))
            print(f"{recording:22} {ours[0]:4} of {ours[1]:4} right   perf {perf[0]:4} of {perf[1]:4}")
            signed = ".none" not in recording
            sums.update(right=ours[0], total=ours[1], perf=perf[0],
                        signed_right=ours[0] * signed, signed=ours[1] * signed)
            if way == NO_MASK:
                continue
            for chain, times in ours[2].items():
                print(f"    wrong, {times} times: {chain}")
            if not masks_are_right(recording, made_by_us, masks, way):
                wrong_masks.append(recording)
                print(f"    wrong masks: {sorted(masks)}")
    print(f"all: {sums['right']} of {sums['total']} right; of perf's {sums['perf']}")
    return sums, wrong_masks


def main():
    arguments = sys.argv[1:]
    way = arguments.pop(0) if arguments[0] in (NO_MASK, KERNEL_MASK) else AS_RECORDED
    stackreel = os.path.abspath(arguments[0])
    here = pathlib.Path(__file__).resolve().parent
    corpus = pathlib.Path(arguments[1] if len(arguments) > 1 else os.environ.get(
        "STACKREEL_CORPUS", here.parent.parent / "shared" / "corpus"))
    arm64 = corpus / "arm64"
    if not arm64.is_dir():
        print(f"no arm64 recordings in {corpus}: nothing compared")
        return 0
    data = pathlib.Path(arguments[2]) if len(arguments) > 2 else arm64 / "data"
    sums, wrong_masks = compare(stackreel, arm64, data, way)
    if way == NO_MASK:
        print(f"of the signed: {sums['signed_right']} of {sums['signed']} right")
        return 0 if sums["signed"] and sums["signed_right"] < sums["signed"] / 2 else 1
    return 0 if sums["total"] and sums["right"] >= LEAST * sums["total"] and not wrong_masks else 1


if __name__ == "__main__":
    sys.exit(main())
