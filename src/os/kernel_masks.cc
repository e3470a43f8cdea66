#include "os/kernel_masks.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "os/file.h"
#include "os/perf_event.h"

namespace stackreel::os {

namespace {

using perfdata::Attr;

Attr SoftwareEvent(uint64_t config) {
  Attr attr;
  attr.type = perfdata::kTypeSoftware;
  attr.config = config;
  attr.sample_period_or_freq = 1;
  attr.flags = perfdata::kAttrExcludeKernel | perfdata::kAttrExcludeHv;
  return attr;
}

// Touches a page that was not there: a page fault of ours, in user space.
void MakePageFault() {
  const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, 0);
  if (page == MAP_FAILED) return;
  *static_cast<volatile char*>(page) = 1;
  munmap(page, size);
}

// Whether a sample of this task has behind its header just the three words that we know to be ours.
bool SampleHasOurMasks(const Fd& fd, const PointerAuthentication& ours) {
  const auto ring = PerfRing::Map(fd, 1);
  if (!ring) return false;
  MakePageFault();
  bool any = false;
  bool all = true;
  const auto drained = (*ring)->Drain([&](ByteView record) -> Status {
    if (LoadUnaligned<uint32_t>(record.data(), kNativeEndian) != PERF_RECORD_SAMPLE) return {};
    constexpr size_t kHeader = 8, kWord = 8, kSize = kHeader + 3 * kWord;
    any = true;
    const auto word = [&](size_t i) {
      return LoadUnaligned<uint64_t>(record.data() + kHeader + i * kWord, kNativeEndian);
    };
    const uint64_t keys = word(0) & kKeysOfPrctl;
    all = all && record.size() == kSize && keys == ours.enabled_keys.value_or(keys) &&
          word(1) == ours.insn_mask && word(2) == ours.data_mask;
    return {};
  });
  return drained && any && all;
}

}  // namespace

MaskProbe ProbeKernelMasks() {
  MaskProbe probe;
  const auto ours = LearnPointerAuthentication();
  if (!ours) return probe;
  probe.has_codes = true;
  Attr records = SoftwareEvent(PERF_COUNT_SW_DUMMY);
  records.flags |= perfdata::kAttrPtrAuth;
  probe.records_error = TryPerfEventOpen(records, 0, -1, -1, 0).error;
  const auto self = static_cast<uint32_t>(getpid());
  probe.has_proc_file = ReadPtrAuthFile(self, self).has_value();
  Attr samples = SoftwareEvent(PERF_COUNT_SW_PAGE_FAULTS);
  samples.sample_type = perfdata::kSampleArch1;
  const OpenAttempt attempt = TryPerfEventOpen(samples, 0, -1, -1, 0);
  probe.samples_error = attempt.error;
  if (attempt.fd.valid()) probe.samples_are_ours = SampleHasOurMasks(attempt.fd, *ours);
  return probe;
}

MaskChoice ChooseMaskRoute(const MaskProbe& probe, MaskRoute best) {
  if (!probe.has_codes) return {};
  MaskChoice choice;
  const auto say = [&choice](std::string_view what, int error, std::string_view otherwise) {
    if (!choice.why_not_better.empty()) choice.why_not_better += ", ";
    choice.why_not_better +=
        error != 0 ? fmt::format("{}: {}", what, strerror(error)) : std::string(otherwise);
  };
  if (best == MaskRoute::kRecords) {
    if (probe.records_error == 0 && probe.has_proc_file) return {MaskRoute::kRecords, {}};
    say("no records of masks", probe.records_error, "no /proc/PID/ptr_auth");
  }
  if (best != MaskRoute::kCpu) {
    if (probe.samples_error == 0 && probe.samples_are_ours) {
      choice.route = MaskRoute::kSamples;
      return choice;
    }
    say("no masks in samples", probe.samples_error, "what samples hold is not this task's mask");
  }
  return choice;
}

std::string DescribeMasks(const MaskChoice& choice) {
  std::string text;
  switch (choice.route) {
    case MaskRoute::kRecords:
      text = "sent by the kernel when they change";
      break;
    case MaskRoute::kSamples:
      text = "in each sample";
      break;
    case MaskRoute::kCpu:
      text = "asked of the CPU";
      break;
  }
  if (!choice.why_not_better.empty()) text += fmt::format(" ({})", choice.why_not_better);
  return text;
}

Result<PointerAuthentication> ParsePtrAuthFile(std::string_view text) {
  std::optional<uint64_t> keys, insn, data;
  const auto take = [](std::string_view line, std::string_view name, std::optional<uint64_t>& out) {
    if (!line.starts_with(name)) return true;
    line.remove_prefix(name.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    uint64_t number = 0;
    if (out || !line.starts_with("0x")) return false;
    const char* end = line.data() + line.size();
    const auto read = std::from_chars(line.data() + 2, end, number, 16);
    out = number;
    return read.ec == std::errc{} && read.ptr == end;
  };
  bool good = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    good = good && take(line, "enabled_keys:", keys) && take(line, "insn_mask:", insn) &&
           take(line, "data_mask:", data);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!good || !keys || !insn || !data) {
    return Fail(
        ErrorKind::kDamaged,
        "a ptr_auth file that does not say enabled_keys, insn_mask and data_mask once each");
  }
  PointerAuthentication found;
  found.enabled_keys = keys;
  found.insn_mask = *insn;
  found.data_mask = *data;
  return found;
}

Result<PointerAuthentication> ReadPtrAuthFile(uint32_t pid, uint32_t tid) {
  TRY_ASSIGN(const std::string text,
             ReadTextFile(fmt::format("/proc/{}/task/{}/ptr_auth", pid, tid)));
  return ParsePtrAuthFile(text);
}

}  // namespace stackreel::os
