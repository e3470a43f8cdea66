#!/usr/bin/env python3
"""Leaves out the rules of anonymising and of its verification, one by one, and asks whether a unit
test fails.

usage: mutate_anonymize.py --check                  does each mutant below still apply?
       mutate_anonymize.py [--only TEXT...] [--keep FOLDER] [-j N]

A mutant is a rule (of docs/anonymize.md, or of the headers of src/anonymize) and a change of one
place of the code that leaves the rule out. The sources are copied into a temporary folder (FOLDER
stays, so that another run compiles less), anonymize_test is compiled there with each mutant in turn
and must fail. One that survives is named, and the exit code is 1. That takes an hour, less for those
whose rule has one of the TEXTs; --check takes a moment, and is a test of every run.
"""

import argparse
import filecmp
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Rule, file in src/anonymize, what stands there exactly once, what stands there without the rule.
MUTANTS = [
    # ---- where mappings move ----
    ("parts of one mapping move together", "build.cc",
     "if (!is_new) groups.Join(i, same->second);", ""),
    ("neighbours stay neighbours", "build.cc",
     "mapping.start <= mappings[reaching]->end) groups.Join(i, reaching);", "false) {}"),
    ("neighbours are judged by what reaches farthest", "build.cc",
     "if (mapping.end > mappings[reaching]->end) reaching = i;", "reaching = i;"),
    ("a module keeps its span", "build.cc", "groups.Join(i, last->second);", ";"),
    ("a span is reserved as a whole", "build.cc",
     "movable.span.end = std::max(movable.span.end, span.end);", ""),
    ("unrelated mappings are a page apart, behind", "place.cc",
     "std::prev(next)->second + arena_.gap > start", "std::prev(next)->second > start"),
    ("unrelated mappings are a page apart, before", "place.cc",
     "next->first < end + arena_.gap", "next->first < end"),
    ("pages are the recorded machine's", "collect.cc",
     "out_.page_size = std::clamp(lowest, kSmallestPageSize, kLargestPageSize);", ""),
    ("mappings avoid what was mapped", "place.cc",
     "return !avoid || !Overlaps(arena_.avoid, start, end);", "return true;"),
    ("mappings avoid what was mapped when it is swapped", "place.cc",
     "if (i >= kTries || !TellsSwapped(movable, start)) found = start;", "found = start;"),
    ("so do pseudonyms", "build.cc", "number == page.number || tells_swapped(number)",
     "number == page.number"),
    ("mappings avoid pseudonyms", "place.cc",
     "if (start < arena_.never.end && end > arena_.never.start) return false;", ""),
    ("text on huge pages stays on them", "build.cc",
     "if (IsHugePageText(*mappings[i], files)) movable", "if (false) movable"),
    ("tasks of 32 bits stay below 4 GB", "build.cc",
     "!kernel && IsNarrow(mappings, collected_.names)", "false"),
    ("machines of 32 bits have halves of their own", "build.cc",
     "return kernel ? Span{kBoundary, k4G - k64K}", "return kernel ? Span{k64K, kBoundary}"),
    ("kernels of 64 bits have the upper half", "build.cc",
     "if (kernel) return {~uint64_t{0} << width.user_bits, ~uint64_t{0} << 32};", ""),
    ("addresses of arm64 need as many bits as before", "build.cc",
     "if (width.has_signatures && !narrow) {", "if (false) {"),
    ("a process may have more than 47 bits", "collect.cc",
     "out_.width.user_bits = std::clamp(bits, kUserBits, kMostUserBits);", ""),
    ("a machine's name says how wide it is", "collect.cc",
     "(out_.features.arch.empty() && !has_narrow_address_)", "true"),
    ("addresses say it, too", "collect.cc", "|| has_wide_address_", ""),
    ("a kernel that ends before its symbol is none", "collect.cc",
     "if (pgoff != 0 && pgoff >= addr + std::min(len, UINT64_MAX - addr)) return {};", ""),
    ("a symbol outside its kernel is none", "build.cc", "is_outside ? start : pgoff", "pgoff"),
    ("an offset in a file is no address", "build.cc",
     "is_offset ? mapping.pgoff : Anywhere(mapping.pgoff)", "mapping.pgoff"),
    ("flags of a branch are no address", "field_transform.cc",
     "entry.flags >= kFlagsEnd && remap_.IsOriginal(word)", "false"),
    ("a kernel that is told too large is cut", "collect.cc",
     "if (starts_below) start = pgoff & ~(kImageAlignment - 1);", ""),
    ("what cannot be has addresses", "collect.cc", "      NoteImpossible(record);", ""),
    ("a chain without a marker is of user space", "field_transform.cc",
     "CpuMode mode = CpuMode::kUser;", "CpuMode mode = context_.mode;"),
    ("a chain has user space of the host", "field_transform.h",
     "return UserSpaceOn(Machine::kHost);", "return context_.user;"),
    ("a kernel's image has an end", "collect.cc",
     "std::min(end - start, session::MostKernelBytes(start))", "(end - start)"),
    ("no module is all of the kernel", "collect.cc",
     "addr == 0 || len > session::kMostKernelModuleBytes", "addr == 0"),
    # ---- whose mappings ----
    ("a forked child has its parent's places", "space.cc",
     "child = ProcessOf(Machine::kHost, task->ppid);", "child.space = next_++;"),
    ("a process that was there before has its own", "space.cc",
     "if ((record.misc & perfdata::kMiscForkExec) == 0) {", "if (true) {"),
    ("threads are no children", "space.cc", "if (!is_fork || task->pid == task->ppid) return;",
     "if (!is_fork) return;"),
    ("exec ends a space", "space.cc",
     "ProcessOf(Machine::kHost, comm->pid).exec_pending = true;", ""),
    ("until the new program is mapped the old one is there", "space.cc",
     "if (!process.exec_pending) return;\n  process = {next_++, false};",
     "if (!process.exec_pending) return;\n  process = {0, false};"),
    ("only exec's COMM ends a space", "space.cc",
     "if ((record.misc & perfdata::kMiscCommExec) == 0) return;", ""),
    ("guests are machines of their own", "space.cc",
     "? Machine::kGuest\n                                                                      : "
     "Machine::kHost", "? Machine::kHost : Machine::kHost"),
    ("a guest's kernel is not the host's", "space.h",
     "return machine == Machine::kHost ? kHostKernel : kGuestKernel;", "return kHostKernel;"),
    # ---- what else of mappings is an address ----
    ("memory without a file has its address as offset", "build.cc",
     "kind == MappingKind::kAnonymous && mapping.pgoff != 0", "false"),
    ("no offset in a file is an address", "build.cc",
     "is_offset ? mapping.pgoff : Anywhere(mapping.pgoff)", "mapping.pgoff"),
    ("the kernel's symbol moves", "build.cc", "? Code(space, mapping.pgoff)", "? mapping.pgoff"),
    ("a symbol that is registered is a mapping", "collect.cc",
     "if (symbol == nullptr || (symbol->flags & kUnregister) != 0) return std::nullopt;",
     "return std::nullopt;"),
    ("a symbol that is unregistered is none", "collect.cc",
     "(symbol->flags & kUnregister) != 0", "false"),
    # ---- addresses of samples ----
    ("markers change the mode", "field_transform.cc",
     "mode = perfdata::ModeOfMarker(marker).value_or(mode);", ""),
    ("a cookie follows the deferred marker", "field_transform.cc",
     "marker == perfdata::kContextUserDeferred && end - at >= 16", "false"),
    ("a tail moves as before in its own space only", "field_transform.cc",
     "at <= tail && space == last.space && equal != 0", "at <= tail && equal != 0"),
    ("a tail has no markers", "field_transform.cc",
     "const size_t equal = std::min(last.outer, last.from.EqualTo(entries));",
     "const size_t equal = last.from.EqualTo(entries);"),
    ("what was not moved as before is kept anew", "field_transform.cc",
     "entries.size()}, taken)", "entries.size()}, equal)"),
    ("branches move", "field_transform.cc", "moved(entry.from)", "entry.from"),
    ("branches move at both ends", "field_transform.cc", "moved(entry.to)", "entry.to"),
    ("deferred chains are the user's", "transform.cc",
     "context.mode = CpuMode::kUser;  // the kernel says so by the marker only", ""),
    ("spaces change with records", "transform.cc", "last_space_.reset();", ""),
    ("pages outside mappings are told apart by process", "build.cc",
     "const Page page = {space, address / page_size};", "const Page page = {0, address / page_size};"),
    ("pseudonyms were not mapped", "build.cc",
     "if (original.end <= at || original.start >= all.end) continue;", "continue;"),
    ("no two pages have one pseudonym", "build.cc",
     "taken_pages_.insert(number).second", "true"),
    ("no page is its own pseudonym", "build.cc", "number == page.number || tells_swapped(number)",
     "tells_swapped(number)"),
    ("0 is no address", "build.cc", "if (address == 0) return 0;", ""),
    ("a return address may be one behind", "build.cc",
     "if (const Segment* segment = Find(space, address - 1)) return address + segment->delta;", ""),
    ("a page that is mapped in part has no one pseudonym", "build.cc",
     "!IsNearMapping(space, start, start + kSize)", "true"),
    ("a page that lies in a mapping in part does not move as one", "build.cc",
     "segment->start <= start && segment->end - start >= kSize", "true"),
    ("pages of data are permuted", "build.cc",
     "first + permuted * page", "(address - address % page)"),
    ("pages of a file stay in order", "build.cc",
     "if (segment == nullptr || !segment->anonymous) return Code(space, address);",
     "if (segment == nullptr) return Code(space, address);"),
    ("signatures are stripped", "build.cc",
     "width.has_signatures ? StripCode(address, ~uint64_t{0} << width.user_bits) : address",
     "address"),
    ("tags of arm64 are stripped", "build.cc",
     "if (collected_.width.has_signatures) return StripTag(address);", ""),
    ("tags of x86 are stripped", "build.cc",
     'collected_.features.arch == "x86_64" ? StripTagX86(address) : address', "address"),
    ("a mapping at 0 moves", "build.cc",
     "segment != nullptr ? mapping.addr + segment->delta : Code(space, mapping.addr)",
     "Code(space, mapping.addr)"),
    # ---- what is scrubbed ----
    ("bp_addr moves", "attr_scrub.cc",
     "kind_ == EventKind::kBreakpoint ? remap_.Anywhere(value) : 0",
     "kind_ == EventKind::kBreakpoint ? value : 0"),
    ("config of probes goes", "attr_scrub.cc",
     "kind_ == EventKind::kBreakpoint ? remap_.Anywhere(value) : 0",
     "kind_ == EventKind::kBreakpoint ? remap_.Anywhere(value) : value"),
    ("what is a probe the recording says", "attr_scrub.cc",
     'pmu->second == "kprobe" || pmu->second == "uprobe"', "false"),
    ("a PMU that is not named may be of probes", "attr_scrub.cc",
     "if (pmu == features.pmu_names.end()) return EventKind::kUnknown;",
     "if (pmu == features.pmu_names.end()) return EventKind::kPlain;"),
    ("what an attr has more is dropped", "attr_scrub.cc", "tail.clear();", ""),
    ("sample_type is of what is left", "attr_scrub.cc", "out.sample_type &= ~dropped;", ""),
    ("hex in names of events moves", "attr_scrub.cc", "event.ids, text.Moved(name)}",
     "event.ids, name}"),
    ("hex in texts moves", "field_transform.cc",
     "return moved(text);\n    case Treatment::kPseudonym:",
     "return text;\n    case Treatment::kPseudonym:"),
    ("breakpoints are looked for in texts", "attr_scrub.cc",
     "|| std::ranges::find(breakpoints_, value) != breakpoints_.end()", ""),
    ("bytes that are an address are blotted out", "attr_scrub.cc", "  BlotAddresses(out);\n", ""),
    ("kallsyms, printk_formats and saved_cmdlines go", "raw_fields.cc",
     "parts->kallsyms = parts->printk_formats = parts->saved_cmdlines = {};", ""),
    ("the index of AUX data goes", "feature_scrub.cc",
     "return static_cast<Feature>(feature) == Feature::kAuxtrace;", "return false;"),
    ("features with payload go", "feature_scrub.cc",
     'if (fields.dropped_content()) return {{}, "payload"};', ""),
    ("records with payload go", "transform.cc",
     'if (fields_.dropped_content()) return Drop(raw, "payload");', ""),
    ("unknown records go", "transform.cc",
     'std::holds_alternative<perfdata::Opaque>(record->body)) return Drop(raw, "unknown");',
     "false) {}"),
    ("the ids of a damaged file are refused", "anonymize.cc", "if (id < kMostIds) continue;",
     "continue;"),
    ("raw data of higher levels is refused", "anonymize.cc",
     "options.keep_raw != KeepRaw::kNothing && options.level > Level::kAddresses", "false"),
    ("pointers of raw data go", "raw_fields.cc", " && !field.is_pointer;", ";"),
    ("texts and arrays of raw data go", "raw_fields.cc", "!field.is_array &&", ""),
    ("addresses in numbers of raw data go", "raw_fields.cc",
     "if (remap_.IsOriginal(value)) return true;", ""),
    ("what may be an address in raw data goes", "raw_fields.cc",
     "return size == 8 && value > UINT32_MAX && !is_error;", "return false;"),
    # ---- the levels above ----
    ("pids are renumbered", "field_transform.cc", "return names_.Pid(value);", "return value;"),
    ("times are shifted", "field_transform.cc", "return names_.Time(sensitivity, value);",
     "return value;"),
    ("wall clocks are shifted by another amount", "pseudonyms.cc",
     "clock == Sensitivity::kWallTime ? wall_shift_ : time_shift_", "time_shift_"),
    ("numbers of files are others", "field_transform.cc",
     "sensitivity == Sensitivity::kFileId ? names_.FileId(value) : 0", "value"),
    ("no device is its own pseudonym", "pseudonyms.cc",
     "if (devices_[i] == i) std::swap(devices_[i], devices_[i == kCount ? 1 : i + 1]);", ""),
    ("comms are pseudonyms", "pseudonyms.cc",
     'IsPublicComm(comm, publics_) ? std::string(comm) : NameOf("c_", comm)', "std::string(comm)"),
    ("public comms stay", "pseudonyms.cc", "IsPublicComm(comm, publics_)", "false"),
    ("functions are pseudonyms", "pseudonyms.cc",
     "if (level_ >= Level::kSymbols && !is_public) return", "if (false) return"),
    ("functions of public modules stay", "pseudonyms.cc",
     "level_ >= Level::kSymbols && !is_public", "level_ >= Level::kSymbols"),
    ("symbols of the kernel's memory are pseudonyms", "pseudonyms.cc",
     'return NameOf(name.starts_with(kProgram) ? "bpf_prog_f_" : "f_", name);',
     "return std::string(name);"),
    ("build-ids are pseudonyms", "pseudonyms.cc",
     "if (id.empty() || public_builds_.contains(Unpadded(id))) return id;", "return id;"),
    ("build-ids of public modules stay", "pseudonyms.cc",
     "public_builds_.contains(Unpadded(id))", "false"),
    ("names of cgroups are pseudonyms", "pseudonyms.cc", "if (IsPublicCgroup(name)) {",
     "if (true) {"),
    ("words of command lines are pseudonyms", "pseudonyms.cc",
     'out.push_back(NameOf("a_", word));', "out.push_back(word);"),
    ("words of events are pseudonyms", "pseudonyms.cc", 'return NameOf("e_", word);',
     "return std::string(word);"),
    # ---- paths and names ----
    ("folders of users are pseudonyms", "path_pseudonyms.cc",
     'out += parts[i].empty() ? "" : NameOf("d_", parts[i]);', "out += parts[i];"),
    ("folders that are not everybody's are pseudonyms", "path_pseudonyms.cc",
     'return NameOf("d_", name);', "return std::string(name);"),
    ("modules are pseudonyms", "path_pseudonyms.cc",
     'if (hide_module) return NameOf("m_", name) + std::string(ExtensionOfCode(name));', ""),
    ("files that are no code are pseudonyms", "path_pseudonyms.cc",
     'return NameOf("n_", name);', "return std::string(name);"),
    ("kernels lose their builder's release", "path_pseudonyms.cc",
     "return std::string(kernel) + Release(name.substr(kernel.size()));",
     "return std::string(name);"),
    ("folders of kernel modules lose it too", "path_pseudonyms.cc", "out += Release(parts[i]);",
     "out += parts[i];"),
    ("names that programs give their memory are pseudonyms", "path_pseudonyms.cc",
     'return bracketed(NameOf(std::string(named) + "n_", inner));', "return bracketed(inner);"),
    ("names of memory that has a file number are pseudonyms", "path_pseudonyms.cc",
     'return NameOf(std::string(named) + "n_", path);', "return std::string(path);"),
    ("numbers in names of stacks and guests are renumbered", "path_pseudonyms.cc",
     "return bracketed(std::string(of_process) + PidText(inner.substr(of_process.size())));",
     "return bracketed(inner);"),
    ("processes in /proc are renumbered", "path_pseudonyms.cc", "out += PidText(parts[i]);",
     "out += parts[i];"),
    ("processes whose root a path begins with are renumbered", "path_pseudonyms.cc",
     'PidText(parts[2]) + "/root"', 'std::string(parts[2]) + "/root"'),
    ("files of JIT compilers are told apart by number only", "path_pseudonyms.cc",
     "if (std::string jit = JitFile(name); !jit.empty()) return jit;", ""),
    ("the kernel's modules are pseudonyms", "path_pseudonyms.cc",
     'if (level_ >= Level::kSymbols && !IsPublic(name)) return bracketed(NameOf("m_", inner));',
     ""),
    ("a deleted file is the same file", "path_pseudonyms.cc", "if (path.ends_with(kDeleted)) {",
     "if (false) {"),
    ("users' names go from other names", "pseudonyms.cc",
     'is_whole ? NameOf("u_", word) : word;', "word;"),
    ("the host's name goes from other names", "pseudonyms.cc", "    add(host);\n", ""),
    ("the first part of the host's name too", "pseudonyms.cc",
     "add(host.substr(0, host.find('.')));", ""),
    ("the host's name is a pseudonym", "pseudonyms.cc", 'return NameOf("h_", text);',
     "return text;"),
    ("releases are two numbers", "pseudonyms.cc", "return Release(text);", "return text;"),
    ("of a machine its maker stays", "pseudonyms.cc", "return CpuMakerIn(text);", "return text;"),
    ("what is no time is not shifted", "pseudonyms.cc",
     "if (time == 0 || time == UINT64_MAX) return time;", ""),
    ("process 0 stays", "pseudonyms.cc", "if (low == 0) return 0;", ""),
    ("samples timed by the wall clock shift with it", "pseudonyms.cc",
     'IsWallClock(collected.events) ? time_shift_ : ShiftOf(key, "wall clock")',
     'ShiftOf(key, "wall clock")'),
    ("names of PMUs stay in events", "pseudonyms.cc", "pmus_.contains(std::string(word))", "false"),
    ("counters of cycles go with identities", "level.cc",
     "from(Level::kIdentity, Treatment::kDrop, Treatment::kKeep)", "Treatment::kKeep"),
    # ---- samples that are rewritten where they stand ----
    ("what loses fields is not rewritten in place", "sample_plan.cc",
     "if (recorded.sample_type != written.sample_type) return std::nullopt;", ""),
    ("what has another length is not rewritten in place", "sample_plan.cc",
     "return (record.size() - least) % 8 == 0 && count == (record.size() - least) / 8;",
     "return true;"),
    ("two ids that may differ are not rewritten in place", "sample_plan.cc",
     "if ((sample_type_ & perfdata::kSampleIdentifier) != 0) possible_ = false;", ""),
    ("what steps make is scrubbed", "anonymize.cc",
     "for (auto& [feature, bytes] : scrubbed(step->Features())) features",
     "for (auto [feature, bytes] : step->Features()) features"),
    # ---- what verification sees: (a) to (f) ----
    ("(a) addresses outside mappings", "verify_out.cc",
     "const bool outside = clean_.IsOutside(address)", "const bool outside = false"),
    ("(a) quickly", "clean_samples.cc", "if (IsOutside(address) || IsLow(address)) return false;",
     ""),
    ("(a) quickly, beside chains", "clean_samples.cc",
     "return !IsOutside(address) && !IsLow(address) && !IsSearchedFor(address);", "return true;"),
    ("(b) mappings that stay", "verify.cc",
     "is.addr == was.addr && !some_stay_by_chance_ && MustMove(was)", "false"),
    ("(b) addresses", "verify_bytes.cc", "const bool is_address = originals_.HasAddress(value);",
     "const bool is_address = false;"),
    ("(b) moves", "verify_bytes.cc", "!is_address && !originals_.IsMove(value)", "!is_address"),
    ("(b) numbers of pages", "verify_bytes.cc", "if (number != 0 && originals_.HasPage(number)) {",
     "if (false) {"),
    ("(b) hex", "verify_bytes.cc", "  Hex(begin, end);\n", ""),
    ("(b) quickly: numbers", "sample_shape.h",
     "if (!is_nothing(value) || !is_nothing(std::byteswap(value))) return false;", ""),
    ("(b) quickly: the other byte order", "sample_shape.h",
     " || !is_nothing(std::byteswap(value))", ""),
    ("(b) quickly: numbers that touch", "sample_shape.cc", "    joins_ = true;\n", ""),
    ("(b) quickly: fields of other lengths have no shape", "sample_shape.cc",
     "if ((attr.sample_type & ~kOfOneLength) != 0) return std::nullopt;", ""),
    ("(b) quickly: payload has no shape", "sample_shape.cc",
     "if (TreatmentOf(level_, span.info->sensitivity) == Treatment::kDrop) return false;", ""),
    ("(b) chains, quickly", "clean_samples.cc", "    if (IsSearchedFor(address)) return false;\n",
     ""),
    ("(b) exact starts of 32 bits", "verify_bytes.cc",
     "if (!originals_.IsLowStart(value)) continue;", "continue;"),
    ("(b) times", "verify_out.cc", "check_.in.times.Has(*span.info, time)) {", "true) {"),
    ("(b) shifted times", "verify_out.cc", "!check_.in.originals.HasAddress(time)", "true"),
    ("(c) payload", "verify_out.cc",
     "!IsPayload(check_.level, span.info->sensitivity)) continue;", "true) continue;"),
    ("(c) a kernel's symbols", "verify_tracing.cc", "if (kallsyms != 0) return", "if (false) return"),
    ("(c) a kernel's texts", "verify_tracing.cc", "if (literals != 0) return", "if (false) return"),
    ("(d) breakpoints", "verify_attr.cc",
     "attr.config1 < kSmallestPage || places.Has(attr.config1)", "true"),
    ("(d) probes", "verify_attr.cc",
     'want(attr.config2 < kSmallestPage, "config2", attr.config2, "of a probe");', ""),
    ("(d) fields of payload", "verify_attr.cc", "(attr.sample_type & payload) == 0", "true"),
    ("(e) texts", "verify_out.cc", "  check_.texts.Find(piece.bytes, tell_text);\n", ""),
    ("(e) names of modules", "verify_out.cc",
     "if (!has_functions && !check_.modules.empty()) check_", "if (false) check_"),
    ("(f) frames", "verify_out.cc", 'if (difference) Add(', "if (false) Add("),
    ("(f) frames by pages: versions", "verify_chains.cc",
     "page.in_version == spaces.in->version() &&", "true &&"),
    ("(f) frames by tails: versions", "verify_chains.cc",
     "spaces.in->version() == last.in_version", "true"),
    ("(f) frames by tails: return addresses only", "verify_chains.cc",
     "if (kind == CodeAddressKind::kInstructionPointer) outer_from = i + 1;", ""),
    ("(f) frames by tails: what is equal in both", "verify_chains.cc",
     "{last.outer, last.in.EqualTo(in.chain.bytes()), last.out.EqualTo(out.chain.bytes())}",
     "{last.outer, last.in.EqualTo(in.chain.bytes())}"),
    ("(f) mappings", "verify.cc", "if (before.size() != after.size()) {\n    Finding finding;",
     "if (false) {\n    Finding finding;"),
    ("(f) counts, times, periods", "verify.cc", "if (counts.samples != facts.samples) {",
     "if (false) {"),
    ("(f) periods", "verify_samples.cc", "facts.time), facts.period)", "facts.time), 0)"),
    ("(f) names", "verify_samples.cc", "modules.Same(was.module, is.module) &&", "true &&"),
    ("(f) records that are more", "verify.cc", "if (count <= before) continue;", "continue;"),
    ("(a) addresses below 4 GB", "clean_samples.cc", "originals_.HasLowAddress(address)", "false"),
    ("(a) offsets of mappings", "verify.cc", "  if (!good) {", "  if (false) {"),
    ("(b) in 32 bits some stay by chance", "verify.cc", "return stayed * kOneOf < all;",
     "return false;"),
    ("(b) hex: pages", "verify_bytes.cc", "has_prefix && value != 0 && originals_.HasPage(value)",
     "false"),
    ("(b) hex: addresses below 4 GB", "verify_bytes.cc",
     "(has_prefix || digits.size() == kMost) && originals_.HasLowAddress(value)", "false"),
    ("(b) hex: exact starts of 32 bits", "verify_bytes.cc",
     "!originals_.is_64_bit() && originals_.IsLowStart(value)", "false"),
    ("(b) exact starts of 32 bits among bytes", "verify_bytes.cc",
     "if (originals_.IsLowStart(value)) Tell(", "if (false) Tell("),
    ("(b) by chance: in the same field of IN", "chance_hits.cc",
     "if (!WasInIn(where.second)) findings_", "if (false) findings_"),
    ("(b) by chance: in fields of no address", "chance_hits.cc",
     "if (!IsNoAddressThere(span, at, value)) return {};", ""),
    ("(b) by chance: an offset in a file", "chance_hits.cc",
     "value < session::kCodeOffsetEnd || value == UINT64_MAX", "false"),
    ("(b) by chance: flags of branches", "chance_hits.cc",
     "if (IsBranches(span)) return IsFlags(span, at);", ""),
    ("(b) by chance: a record's two ids", "chance_hits.cc",
     "return IsEventId(span) ? &kEventId : span.info;", "return span.info;"),
    ("(b) by chance: the size of an attr", "chance_hits.cc",
     "for (size_t at = 0; at < kWord; ++at) see(at);", ""),
    ("(b) two counts are no address", "verify_bytes.cc",
     "(order != endian_ || IsTwoCounts(value))", "order != endian_"),
    ("(b) sizes of texts are none", "verify_record.cc", "fields.BeginFeature(bytes);", ""),
    ("(b) no process has memory beyond 57 bits", "originals.cc",
     "start < kUpperHalf && end > kUserEnd", "false"),
    ("(b) what became nothing did not move", "originals.cc", "|| out.all()[i].addr == 0", ""),
    ("(b) of modules that are too large the ends", "originals.cc",
     "is_module ? mapping.len : end - start", "end - start"),
    ("(e) what is no text is no name", "verify_text.cc",
     "text.size() >= kShortest && IsText(text)", "text.size() >= kShortest"),
    ("(b) by chance: a chain's markers", "chance_hits.cc",
     "span.IsAddresses() && value >= perfdata::kContextMax", "false"),
    ("(b) by chance: not where events have addresses", "chance_hits.cc",
     "if (MayHaveAddress(attr.type, pmu_names_)) {", "if (false) {"),
    ("(c) bytes behind records", "verify_out.cc", "} else if (raw.extra_size != 0) {",
     "} else if (false) {"),
    ("(d) registers of programs", "verify_attr.cc", "attr.sample_regs_user == 0", "true"),
    ("(d) registers of interrupts", "verify_attr.cc", "attr.sample_regs_intr == 0", "true"),
    ("(d) stacks", "verify_attr.cc", "attr.sample_stack_user == 0", "true"),
    ("(d) AUX data", "verify_attr.cc", "attr.aux_sample_size == 0", "true"),
    ("(d) data of signals", "verify_attr.cc", "attr.sig_data == 0", "true"),
    ("(d) what is not known of attrs", "verify_attr.cc", "if (unknown != attr.tail.end()) want",
     "if (false) want"),
    ("(e) numbers that stay", "hidden_values.cc", "if (bits >= kSure) {", "if (false) {"),
    ("(e) numbers one for one", "hidden_values.cc", "known != out || is_others", "is_others"),
    ("(e) numbers that are another's", "hidden_values.cc", "known != out || is_others",
     "known != out"),
    ("(e) shifts", "hidden_values.cc", "if (out == in || out - in != shift_) {", "if (false) {"),
    ("(e) wall clocks", "hidden_values.cc",
     'if (out == in) tell(field, fmt::format("{}, as in IN", out));', ""),
    ("(e) what is no time", "hidden_values.cc",
     'if (out != in) tell(field, fmt::format("{}, in IN no time", out));', ""),
    ("(e) what is no number", "hidden_values.cc",
     'if (out != in) tell(field, fmt::format("{}, in IN {}, which is none", out, in));', ""),
    ("(e) functions", "hidden_values.cc",
     r'tell(field, fmt::format("\"{}\", a function of a module that is not public", text));', ""),
    ("(e) parts of names", "hidden_values.cc", "if (known->second.contains(part)) tell",
     "if (false) tell"),
    ("(e) build-ids", "hidden_values.cc",
     'tell_(field, "of a module or program that is not public");', ""),
    ("(e) build-ids in hex", "hidden_values.cc", "texts.insert(hex);", ""),
    ("(e) numbers of the machine", "hidden_values.cc",
     'tell_(field, fmt::format("{}, of the machine", number));', ""),
    ("(e) numbers in samples", "hidden_values.cc",
     'tell("SAMPLE", *field, "numbers do not stand for IN\'s one for one");', ""),
    ("(e) users in paths", "verify_text.cc", "  AddHomeOf(path);\n", ""),
    ("(e) users in command lines", "verify_text.cc", "    AddHomeOf(word);\n", ""),
    ("(e) users in paths of build-ids", "verify_text.cc", "AddHomeOf(id.filename);", ";"),
    ("(e) words of command lines", "verify_text.cc",
     "if (!is_allowed && !before.empty()) Add(word);", ""),
    ("(e) cgroups", "verify_text.cc", "if (!is_public) Add(path);", ""),
    ("(e) host names", "verify_text.cc", "  Add(features.hostname);\n", ""),
    ("(e) whole words", "verify_text.cc",
     "(i != 0 && joined(i - 1, i)) || (end < bytes.size() && joined(end - 1, end))", "false"),
    ("(f) lengths of mappings", "verify.cc", "!was.kernel && is.len != was.len", "false"),
    ("what is written stays its event's", "transform.cc",
     "is_kernels && written_table_.IndexOf(written, endian_) != timed.event", "false"),
    ("what is mapped beyond all memory goes", "transform.cc",
     "space >= kFirstUserSpace && session::ReachesBeyondMemory(mapping->addr, mapping->len)",
     "false"),
    ("what is mapped beyond all memory ends no space", "space.cc",
     " || session::ReachesBeyondMemory(addr, len)", ""),
    ("(b) ends of what is mapped beyond all memory", "originals.cc",
     "    AddEnds(mapping.addr, mapping.addr + std::min(mapping.len, UINT64_MAX - mapping.addr));\n",
     ""),
    ("(f) nothing is mapped beyond all memory", "verify.cc",
     "for (const SeenMapping& mapping : out_.impossible()) {",
     "for (const SeenMapping& mapping : std::vector<SeenMapping>()) {"),
    ("(f) nothing lies beyond all memory", "../session/session.cc",
     "if (ReachesBeyondMemory(mmap.addr, mmap.len)) {", "if (false) {"),
    ("names of memory stay", "field_transform.cc",
     "sensitivity == Sensitivity::kPath && IsNameOfMemory(text)", "false"),
    ("(b) names of memory are no address", "verify_out.cc",
     "named && IsInNameOfMemory(piece.bytes, *hit.field, hit.offset)", "false"),
    ("(e) a public name behind a number", "verify_out.cc",
     "if (IsBehindNumbers(piece.bytes, fields_.spans(), offset, text, check_.hidden)) return;", ""),
    ("(e) what is hidden behind a number", "hidden_values.h",
     "PrivateParts(field.sensitivity, text, rules_).empty();", "true;"),
    ("no build-id is an address", "field_transform.cc", "text_.HasAddress(id.bytes())", "false"),
    ("no tag is an address", "field_transform.h", "if (text_.HasAddress(bytes)) names_.Tag(bytes);",
     ""),
    ("the mark must be there", "verify.cc",
     "if (options.must_be_marked && mark != options.level) {", "if (false) {"),
    ("what is damaged is not verified", "verify.cc", "TRY(CheckWhole(read, out.name()));", ""),
]


def mutated(text, old, new):
    """The text without the rule; None if the place is not there, or not alone."""
    return text.replace(old, new) if text.count(old) == 1 else None


def check():
    """Whether all apply."""
    bad = 0
    for rule, name, old, new in MUTANTS:
        with open(os.path.join(ROOT, "src/anonymize", name), encoding="utf-8") as source:
            if mutated(source.read(), old, new) is None:
                bad += 1
                print(f"{rule}: in src/anonymize/{name} there is not one: {old!r}")
    print(f"{len(MUTANTS)} mutants, {bad} of them do not apply")
    return bad == 0


def copy_sources(folder):
    """Makes the folder's sources those of the tree, whatever a run that was ended has left there.

    A source that differs gets the time of now: that of the tree may be older than what was compiled
    of another one here.
    """
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    for name in listed.stdout.decode().split("\0"):
        source, copy = os.path.join(ROOT, name), os.path.join(folder, name)
        if not os.path.isfile(source):
            if os.path.isfile(copy):
                os.remove(copy)
            continue
        if os.path.isfile(copy) and filecmp.cmp(source, copy, shallow=False):
            continue
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copyfile(source, copy)
        shutil.copymode(source, copy)


def prepare(folder):
    """Copies the sources and compiles the test as it is, which must pass."""
    copy_sources(folder)
    launcher = [f"-DCMAKE_CXX_COMPILER_LAUNCHER={found}"
                for found in [shutil.which("ccache")] if found]
    subprocess.run(["cmake", "--preset", "dev", *launcher], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL)


def test_fails(folder, jobs):
    """Whether a test fails (or "compile" if it is none that compiles), and what was printed."""
    built = subprocess.run(["ninja", "-C", "build/dev", f"-j{jobs}", "anonymize_test"], cwd=folder,
                           capture_output=True, text=True, errors="replace", check=False)
    if built.returncode != 0:
        return "compile", built.stdout
    test = os.path.join(folder, "build/dev/src/anonymize/anonymize_test")
    try:
        ran = subprocess.run([test, "--gtest_fail_fast", "--gtest_brief=1"], timeout=600,
                             capture_output=True, text=True, errors="replace", check=False)
    except subprocess.TimeoutExpired:
        return True, "it took more than 10 minutes"
    return ran.returncode != 0, ran.stdout + ran.stderr


def fails_without(folder, jobs, mutant):
    """What test_fails has of the mutant."""
    _, name, old, new = mutant
    path = os.path.join(folder, "src/anonymize", name)
    with open(path, encoding="utf-8") as source:
        text = source.read()
    try:
        with open(path, "w", encoding="utf-8") as source:
            source.write(mutated(text, old, new))
        return test_fails(folder, jobs)[0]
    finally:
        with open(path, "w", encoding="utf-8") as source:
            source.write(text)


def run(folder, only, jobs):
    """Tries the mutants; gives how many survived."""
    prepare(folder)
    fails, printed = test_fails(folder, jobs)
    if fails is not False:
        sys.exit(f"{printed}\nanonymize_test fails without any mutant")
    survived = tried = 0
    for mutant in MUTANTS:
        if only and not any(text in mutant[0] for text in only):
            continue
        tried += 1
        fails = fails_without(folder, jobs, mutant)
        if fails is not True:
            survived += 1
        outcome = {True: "killed", False: "SURVIVED", "compile": "DOES NOT COMPILE"}[fails]
        print(f"{outcome}: {mutant[0]}", flush=True)
    print(f"{tried} mutants, {survived} survived")
    return survived


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", metavar="TEXT", nargs="+")
    parser.add_argument("--keep", metavar="FOLDER")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    args = parser.parse_args()
    if not check():
        return 1
    if args.check:
        return 0
    if args.keep:
        return 1 if run(args.keep, args.only, args.jobs) else 0
    with tempfile.TemporaryDirectory() as folder:
        return 1 if run(folder, args.only, args.jobs) else 0


if __name__ == "__main__":
    sys.exit(main())
