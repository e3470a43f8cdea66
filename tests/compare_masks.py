#!/usr/bin/env python3
"""Masks of pointer authentication in recordings of tests/lab/record_masks.sh against what the programs
that were recorded said of themselves, by prctl and ptrace.

usage: compare_masks.py FOLDER      (out/masks of the lab's share)

Of each recording: each mask at each time as the program had it, each chain through burn() as the
program said it, and where the masks come from. On a kernel that sends records of masks these are
there before the samples that need them, they say the keys of each thread, and they cover what ran
before; they add nothing to a sample, and the field in each sample adds 24 bytes. On another kernel the
recording says what it falls back to. perf in the guest must have read every one."""
import collections
import json
import pathlib
import struct
import sys

KEYS_OF_PRCTL = 0xf  # PR_PAC_GET_ENABLED_KEYS does not speak of APGA
EVENT_UPDATE, SAMPLE, PTR_AUTH, MASK_UPDATE = 78, 9, 23, 60000
RECORDS, SAMPLES, CPU = "sent by the kernel", "in each sample", "asked of the CPU"
ASKED_FOR = {"samples": SAMPLES, "cpu": CPU}  # by --pac-masks; the others take the best there is
SOURCES = {RECORDS: {"the kernel"}, SAMPLES: {"the sample"},
           CPU: {"the recorder's CPU", "the process's record"}}
KERNELS_SOURCES = (3, 4)  # docs/file-format.md: a record of the kernel's, a file in /proc
CALLER = 3  # in burn<inner<outer<CALLER<…
BITS_OF_FIELDS = {16: 8, 0: 8, 1: 8, 2: 8, 7: 8, 8: 8, 25: 24}  # of sample_type: bytes in a sample

Mask = collections.namedtuple("Mask", "time pid tid keys insn data source")
State = collections.namedtuple("State", "time pid tid what keys insn data")
Chain = collections.namedtuple("Chain", "time pid tid functions")


def read_said(path):
    states, chains = [], []
    for line in path.read_text().splitlines():
        kind, time, pid, tid, *rest = line.split()
        if kind == "STATE":
            states.append(State(int(time), int(pid), int(tid), rest[0],
                                *(int(word, 16) for word in rest[1:])))
        elif kind == "CHAIN":
            chains.append(Chain(int(time), int(pid), int(tid), rest[0].split("<")))
    return states, chains


def read_records(path):
    """Masks as the records say them, in the order of the file; the types of all records; of samples
    how many bytes each has beside its chain."""
    content = path.read_bytes()
    attrs, _, at, size = struct.unpack_from("<4Q", content, 24)
    sample_type, = struct.unpack_from("<Q", content, attrs + 24)
    end = at + size
    masks, types, rests = [], collections.Counter(), collections.Counter()
    chain_at = 8 + sum(n for bit, n in BITS_OF_FIELDS.items() if sample_type >> bit & 1 and bit != 25)
    while at < end:
        kind, _, size = struct.unpack_from("<IHH", content, at)
        types[kind] += 1
        if kind == EVENT_UPDATE and struct.unpack_from("<Q", content, at + 8)[0] == MASK_UPDATE:
            pid, tid, time, keys, insn, data, source = struct.unpack_from("<II4QI", content, at + 32)
            masks.append(Mask(time, pid, tid, keys, insn, data, source))
        if kind == SAMPLE and not sample_type >> 13 & 1:  # no stack in it
            rests[size - 8 * struct.unpack_from("<Q", content, at + chain_at)[0]] += 1
        at += size
    return masks, types, rests


def last_before(events, time, tid):
    found = [event for event in events if event.tid == tid and event.time <= time]
    return max(found, key=lambda event: event.time, default=None)


def check_records(states, masks, first_sample):
    """Problems of what the kernel said, held against what the programs were."""
    for state in states:
        mask = last_before(masks, state.time, state.tid)
        if mask is None or mask.source not in KERNELS_SOURCES:
            yield f"{state.what}: no record of the kernel's"
        elif (mask.keys & KEYS_OF_PRCTL, mask.insn, mask.data) != state[4:]:
            yield f"{state.what}: the kernel says {mask}, the program {state}"
    for pid, time in first_sample.items():
        if not any(mask.pid == pid and mask.time <= time for mask in masks):
            yield f"process {pid} has a sample before its mask"


def check_samples(states, chains, samples, sources):
    """Problems of the samples of the programs, held against what these said."""
    insn_masks = {state.pid: state.insn for state in states}
    compared = collections.Counter()
    for sample in samples:
        if sample["pid"] not in insn_masks:
            continue
        time = sample["time_ns"]
        where = f"{sample['comm']} {sample['pid']}/{sample['tid']} at {time}"
        if int(sample["insn_mask"], 16) != insn_masks[sample["pid"]]:
            yield f"{where}: mask {sample['insn_mask']}, not {insn_masks[sample['pid']]:#x}"
        if sample["mask_source"] not in sources:
            yield f"{where}: mask from {sample['mask_source']}"
        functions = [frame.get("sym", "").split("+")[0] for frame in sample["frames"]
                     if frame.get("dso", "").rsplit("/", 1)[-1] in ("masks", "masks.plain")]
        if "burn" not in functions:
            continue
        functions = functions[functions.index("burn"):]  # without what it calls: the clock
        said = last_before(chains, time, sample["tid"])
        compared[said.functions[CALLER] if said else "?"] += 1
        # Beyond main there is no more of the program but its start.
        if said is None or functions[:len(said.functions)] != said.functions or \
                functions[len(said.functions):] not in ([], ["_start"]):
            yield f"{where}: {' < '.join(functions)}, said {said and ' < '.join(said.functions)}"
    print(f"    chains through burn, by who called: {dict(compared)}")
    missing = {chain.functions[CALLER] for chain in chains} - set(compared)
    if missing:
        yield f"no chain of {sorted(missing)} was sampled"


def check_recording(folder, name):
    """Problems of one recording, and the bytes that its samples have beside their chains."""
    states, chains = read_said(folder / f"{name}.said")
    masks, types, rests = read_records(folder / f"{name}.data")
    log = (folder / f"{name}.err").read_text()
    way = next((line for line in log.splitlines() if line.startswith("  masks: ")), "  masks: ?")[9:]
    samples = [json.loads(line) for line in (folder / f"{name}.script.out").read_text().splitlines()]
    print(f"{name}: {way}; {len(samples)} samples, {len(masks)} records of masks, "
          f"{len(states)} states said")
    kind = next((kind for kind in SOURCES if way.startswith(kind)), None)
    if kind is None:
        return [f"no word of how masks came: {way}"], rests, way
    problems = []
    if types[PTR_AUTH]:
        problems.append("a record that perf ends at")
    if kind != ASKED_FOR.get(name, RECORDS) and "(" not in way:
        problems.append("it does not say why not better")
    first_sample = {}
    pids = {state.pid for state in states}
    for sample in samples:
        if sample["pid"] in pids:
            first_sample[sample["pid"]] = min(sample["time_ns"],
                                              first_sample.get(sample["pid"], 1 << 64))
    if kind == RECORDS:
        problems += check_records(states, masks, first_sample)
    problems += check_samples(states, chains, samples, SOURCES[kind])
    perf = (folder / f"{name}.perf.err").read_text().strip()
    if perf and not (kind == SAMPLES and perf.startswith("Unknown sample type")):
        problems.append(f"perf says: {perf[:200]}")
    if not (folder / f"{name}.perf.out").read_text().count("\n"):
        problems.append("perf shows nothing of it")
    return problems, rests, way


def main():
    folder = pathlib.Path(sys.argv[1])
    failed = False
    sizes, ways = {}, {}
    for data in sorted(folder.glob("*.data")):
        name = data.name.removesuffix(".data")
        problems, rests, ways[name] = check_recording(folder, name)
        if rests:
            sizes[name] = set(rests)
        for problem in problems[:20]:
            print(f"    {problem}")
        failed |= bool(problems)
    print("bytes of a sample beside its chain: " +
          ", ".join(f"{name} {sorted(size)}" for name, size in sizes.items()))
    plain = sizes.get("cpu")
    for name, size in sizes.items():
        more = 24 if ways[name].startswith(SAMPLES) else 0
        if plain is None or {rest - more for rest in size} != plain:
            print(f"    {name}: not {more} bytes more than without masks")
            failed = True
    expected = {"best", "later", "samples", "cpu"}
    if set(ways) != expected:
        print(f"recordings: {sorted(ways)}, not {sorted(expected)}")
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
