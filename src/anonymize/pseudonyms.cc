#include "anonymize/pseudonyms.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

namespace stackreel::anonymize {

using perfdata::Sensitivity;
using std::string_view;

namespace {

constexpr string_view kWordLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
constexpr size_t kLetters = 10;  // of a pseudonym: 40 bits

bool IsAlnum(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Times of the clock begin somewhere in the years 2006 to 2116, so that no sum overflows before
// 2260 and what was there before does not show.
uint64_t ShiftOf(const Key& key, string_view clock) {
  constexpr uint64_t kLeast = uint64_t{1} << 60, kSpan = 3 * kLeast;
  return kLeast + key.For(clock).Of({0}) % kSpan;
}

// Whether times of samples are the wall clock's: CLOCK_REALTIME, CLOCK_TAI.
bool IsWallClock(const std::vector<perfdata::Event>& events) {
  constexpr int32_t kRealtime = 0, kTai = 11;
  return std::ranges::any_of(events, [](const perfdata::Event& event) {
    return (event.attr.flags & perfdata::kAttrUseClockid) != 0 &&
           (event.attr.clockid == kRealtime || event.attr.clockid == kTai);
  });
}

size_t SizeWithoutPadding(ByteView bytes) {
  size_t size = bytes.size();
  while (size != 0 && bytes[size - 1] == 0) --size;
  return size;
}
BuildId Unpadded(const BuildId& id) {
  return BuildId(id.bytes().first(SizeWithoutPadding(id.bytes())));
}

// [1, count] onto itself.
uint64_t PermuteFrom1(const KeyedHash& hash, uint64_t number, uint64_t count) {
  return hash.Permute(number - 1, count, count) + 1;
}

}  // namespace

std::set<std::string> IdentityWords(const Collected& collected) {
  std::set<std::string> words;
  const auto add = [&](string_view word) {
    constexpr size_t kShortest = 2;
    if (word.size() >= kShortest && !IsNumber(word) && !IsPublicFolder(word)) words.emplace(word);
  };
  const auto add_user_of = [&](string_view path) {
    for (const string_view homes : {"/home/", "/Users/"}) {
      const size_t at = path.find(homes);
      if (at == string_view::npos) continue;
      const string_view rest = path.substr(at + homes.size());
      add(rest.substr(0, rest.find('/')));
    }
  };
  const string_view host = collected.features.hostname;
  constexpr string_view kNobodysHost = "localhost";
  if (!host.starts_with(kNobodysHost)) {
    add(host);
    add(host.substr(0, host.find('.')));
  }
  for (size_t id = 0; id < collected.names.size(); ++id) {
    add_user_of(collected.names.Text(static_cast<StringInterner::Id>(id)));
  }
  for (const std::string& word : collected.features.cmdline) add_user_of(word);
  for (const auto& id : collected.features.build_ids) add_user_of(id.filename);
  return words;
}

Pseudonyms::Pseudonyms(const Key& key, Level level, const PublicNames& publics,
                       const Collected& collected)
    : level_(level),
      publics_(publics),
      names_(key.For("names")),
      numbers_(key.For("process numbers")),
      files_(key.For("file numbers")),
      builds_(key.For("build-ids")),
      time_shift_(ShiftOf(key, "clock")),
      wall_shift_(IsWallClock(collected.events) ? time_shift_ : ShiftOf(key, "wall clock")),
      identity_(IdentityWords(collected)) {
  if (level >= Level::kIdentity) NumberDevices();
  for (const auto& [type, name] : collected.features.pmu_names) pmus_.insert(name);
  for (const auto& [id, name] : collected.build_ids) {
    if (IsPublic(collected.names.Text(name))) public_builds_.insert(Unpadded(id));
  }
  for (const auto& id : collected.features.build_ids) {
    if (IsPublic(id.filename)) public_builds_.insert(Unpadded(id.build_id));
  }
}

// Numbers that fit Linux's largest pid stay so, for readers with tables.
uint64_t Pseudonyms::Pid(uint64_t pid) {
  constexpr uint32_t kMostPids = 1U << 22;
  const auto low = static_cast<uint32_t>(pid);
  // What stands above 32 bits is no number of a process.
  if (low == 0) return 0;
  if (low == UINT32_MAX) return pid == UINT64_MAX ? pid : low;
  const auto [found, is_new] = pids_.try_emplace(low);
  if (is_new) {
    found->second = static_cast<uint32_t>(
        low < kMostPids
            ? PermuteFrom1(numbers_, low, kMostPids - 1)
            : kMostPids + PermuteFrom1(numbers_, low - kMostPids + 1, UINT32_MAX - kMostPids) - 1);
  }
  return found->second;
}

uint64_t Pseudonyms::Time(Sensitivity clock, uint64_t time) const {
  if (time == 0 || time == UINT64_MAX) return time;
  return time + (clock == Sensitivity::kWallTime ? wall_shift_ : time_shift_);
}

// Numbers of kinds of devices are few: none is to become itself, as one of them would by chance.
void Pseudonyms::NumberDevices() {
  constexpr uint32_t kCount = (1U << 12) - 1;
  devices_.resize(kCount + 1);
  for (uint32_t i = 1; i <= kCount; ++i) {
    devices_[i] = static_cast<uint16_t>(PermuteFrom1(files_, i, kCount));
  }
  for (uint32_t i = 1; i <= kCount; ++i) {
    if (devices_[i] == i) std::swap(devices_[i], devices_[i == kCount ? 1 : i + 1]);
  }
}

// The size of a number stays, roughly: fields are of different widths.
uint64_t Pseudonyms::FileId(uint64_t id) const {
  if (id == 0) return 0;
  if (id < devices_.size()) return devices_[id];
  for (const unsigned bits : {20U, 32U}) {
    const uint64_t count = (uint64_t{1} << bits) - 1;
    if (id <= count) return PermuteFrom1(files_, id, count);
  }
  return id == UINT64_MAX ? id : PermuteFrom1(files_, id, UINT64_MAX - 1);
}

BuildId Pseudonyms::Build(const BuildId& id) const {
  if (id.empty() || public_builds_.contains(Unpadded(id))) return id;
  std::vector<uint8_t> bytes(id.bytes().begin(), id.bytes().end());
  Tag(bytes);
  return BuildId(bytes);
}

// Zeros at the end stay, and no other byte becomes one: they may be padding.
void Pseudonyms::Tag(std::span<uint8_t> tag) const {
  const std::span<uint8_t> bytes = tag.first(SizeWithoutPadding(tag));
  if (bytes.empty()) return;
  const uint64_t seed = builds_.OfBytes(bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(1 + builds_.Of({seed, i}) % 255);
  }
}

std::string Pseudonyms::NameOf(string_view prefix, string_view text) const {
  return std::string(prefix) + names_.NameOf(text, kLetters);
}

std::string Pseudonyms::Function(string_view name, bool is_public) const {
  if (level_ >= Level::kSymbols && !is_public) return NameOf("f_", name);
  return WithoutIdentity(name);
}

std::string Pseudonyms::PidText(string_view digits) {
  uint32_t pid = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  return error == std::errc() ? std::to_string(Pid(pid)) : NameOf("n_", digits);
}

std::string Pseudonyms::WithoutIdentity(string_view text) const {
  std::string out(text);
  for (const std::string& word : identity_) {
    size_t at = 0;
    while ((at = out.find(word, at)) != std::string::npos) {
      const size_t end = at + word.size();
      const bool is_whole =
          (at == 0 || !IsAlnum(out[at - 1])) && (end == out.size() || !IsAlnum(out[end]));
      const std::string with = is_whole ? NameOf("u_", word) : word;
      out.replace(at, word.size(), with);
      at += with.size();
    }
  }
  return out;
}

std::string Pseudonyms::Text(Sensitivity sensitivity, const std::string& text) {
  if (text.empty()) return text;
  switch (sensitivity) {
    case Sensitivity::kComm:
      return Comm(text);
    case Sensitivity::kSymbol:
      return Symbol(text);
    case Sensitivity::kEventName:
      return EventName(text);
    case Sensitivity::kFunction:
      return Function(text, module_is_public_);
    case Sensitivity::kPath:
      module_is_public_ = IsPublic(text);
      return Path(text);
    case Sensitivity::kCgroupPath:
      return CgroupPath(text);
    case Sensitivity::kHostName:
      return NameOf("h_", text);
    case Sensitivity::kRelease:
      return Release(text);
    case Sensitivity::kMachine:
      return CpuMakerIn(text);
    default:
      return "";
  }
}

std::string Pseudonyms::Comm(string_view comm) const {
  return IsPublicComm(comm, publics_) ? std::string(comm) : NameOf("c_", comm);
}

std::string Pseudonyms::Symbol(string_view name) const {
  if (level_ < Level::kSymbols) return WithoutIdentity(name);
  if (IsPublicSymbol(name)) return std::string(name);
  // By its beginning readers know what it is.
  constexpr string_view kProgram = "bpf_prog_";
  return NameOf(name.starts_with(kProgram) ? "bpf_prog_f_" : "f_", name);
}

std::string Pseudonyms::CgroupPath(string_view path) const {
  constexpr auto kKinds =
      std::to_array<string_view>({".service", ".slice", ".scope", ".socket", ".mount", ".swap"});
  std::string out;
  size_t at = 0;
  while (at <= path.size()) {
    const size_t end = std::min(path.find('/', at), path.size());
    const string_view name = path.substr(at, end - at);
    if (at != 0) out += '/';
    if (IsPublicCgroup(name)) {
      out += name;
    } else {
      out += NameOf("g_", name);
      for (const string_view kind : kKinds) {
        if (name.ends_with(kind)) out += kind;
      }
    }
    at = end + 1;
  }
  return out;
}

// Words of perf's own, numbers and modifiers stay.
std::string Pseudonyms::EventWord(string_view word, char before) const {
  constexpr string_view kModifiers = "ukhHGpPIDSWeb";
  constexpr size_t kMostModifiers = 8;
  const bool is_hex =
      (word.starts_with("0x") || word.starts_with("r")) && word.size() > 1 &&
      word.find_first_not_of("0123456789abcdef", word[0] == 'r' ? 1 : 2) == string_view::npos;
  const bool are_modifiers = (before == ':' || before == '/') && word.size() <= kMostModifiers &&
                             word.find_first_not_of(kModifiers) == string_view::npos;
  if (is_hex || are_modifiers || IsNumber(word) || IsPublicEventWord(word) ||
      pmus_.contains(std::string(word))) {
    return std::string(word);
  }
  return NameOf("e_", word);
}

std::string Pseudonyms::EventName(string_view name) const {
  std::string out;
  size_t at = 0;
  while (at < name.size()) {
    const size_t end = std::min(name.find_first_not_of(kWordLetters, at), name.size());
    if (end == at) {
      const char c = name[at++];
      const bool is_punctuation = string_view(":/,={}*+@ ").contains(c);
      out += is_punctuation ? c : '_';
      continue;
    }
    const string_view word = name.substr(at, end - at);
    // "sched:sched_switch": the name within a system of the kernel is the kernel's.
    if (end + 1 < name.size() && name[end] == ':' && IsPublicTracepointSystem(word)) {
      const size_t behind = std::min(name.find_first_not_of(kWordLetters, end + 1), name.size());
      out += name.substr(at, behind - at);
      at = behind;
      continue;
    }
    out += EventWord(word, at == 0 ? ' ' : name[at - 1]);
    at = end;
  }
  return out;
}

std::vector<std::string> Pseudonyms::Arguments(const std::vector<std::string>& words) {
  constexpr auto kTakeNumber = std::to_array<string_view>(
      {"-F", "--freq", "-c", "--count", "-m", "--mmap-pages", "-z", "-k", "--clockid"});
  constexpr auto kCallGraphs = std::to_array<string_view>({"fp", "dwarf", "lbr", "no"});
  std::vector<std::string> out;
  string_view before;
  for (const std::string& word : words) {
    const string_view file = string_view(word).substr(word.rfind('/') + 1);
    const size_t sign = word.find('=');
    const string_view option =
        word.starts_with("--") ? string_view(word).substr(0, sign) : string_view(word);
    if (out.empty() && (file == "perf" || file == "stackreel")) {
      out.emplace_back(file);
    } else if (before == "-e" || before == "--event") {
      out.push_back(EventName(word));
    } else if (std::ranges::find(kTakeNumber, before) != kTakeNumber.end() && IsNumber(word)) {
      out.push_back(word);
    } else if (before == "--call-graph" &&
               std::ranges::find(kCallGraphs, word.substr(0, word.find(','))) !=
                   kCallGraphs.end() &&
               word.find_first_not_of(kDigits, word.find(',') + 1) == std::string::npos) {
      out.push_back(word);
    } else if (!IsPublicArgument(option)) {
      out.push_back(NameOf("a_", word));
    } else if (option.size() == word.size()) {
      out.push_back(word);
    } else {
      out.push_back(std::string(option) + "=" + NameOf("a_", word.substr(sign + 1)));
    }
    before = word;
  }
  return out;
}

}  // namespace stackreel::anonymize
