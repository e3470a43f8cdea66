#include "anonymize/verify_text.h"

#include <algorithm>
#include <variant>

#include "anonymize/public_names.h"

namespace stackreel::anonymize {
namespace {

constexpr size_t kShortest = 4;
constexpr size_t kSlots = size_t{1} << 16;

bool IsWordByte(uint8_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

bool IsText(std::string_view name) {
  return std::ranges::any_of(name, [&](char c) { return c != name.front(); }) &&
         std::ranges::none_of(name, [](char c) { return static_cast<uint8_t>(c) < ' '; });
}

void DenyList::Add(std::string_view text) {
  if (text.size() >= kShortest && IsText(text)) texts_.emplace(text);
}

void DenyList::AddHomeOf(std::string_view path) {
  for (const std::string_view homes : {"/home/", "/Users/"}) {
    if (!path.starts_with(homes)) continue;
    const std::string_view rest = path.substr(homes.size());
    const std::string_view name = rest.substr(0, rest.find('/'));
    if (!IsPublicFolder(name)) Add(name);
  }
}

void DenyList::AddPath(const std::string& path) {
  AddHomeOf(path);
  paths_.insert(path);
}

void DenyList::AddCgroup(std::string_view path) {
  bool is_public = true;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    is_public = is_public && IsPublicCgroup(path.substr(at, end - at));
    at = end + 1;
  }
  if (!is_public) Add(path);
}

// The first words are the recorder's and its command's; a word of letters only is a command.
void DenyList::AddArguments(const std::vector<std::string>& words) {
  std::string_view before;
  for (const std::string& word : words) {
    AddHomeOf(word);
    const bool is_option = word.starts_with('-');
    const bool is_name = std::ranges::all_of(
        word, [](char c) { return (c >= 'a' && c <= 'z') || c == '-' || c == '_'; });
    const bool is_number = std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
    const bool is_of_option = before == "-e" || before == "--event" || before == "--call-graph";
    const bool is_of_path =
        !word.contains("/home/") && !word.contains("/Users/") &&
        std::ranges::any_of(paths_, [&](const std::string& path) { return path.contains(word); });
    const bool is_allowed = is_option || is_name || is_number || is_of_option || is_of_path;
    if (!is_allowed && !before.empty()) Add(word);
    before = word;
  }
}

void DenyList::AddRecord(const perfdata::Record& record) {
  if (level_ < Level::kIdentity) return;
  if (const auto* mmap = std::get_if<perfdata::Mmap>(&record.body)) {
    AddPath(mmap->filename);
  } else if (const auto* mmap2 = std::get_if<perfdata::Mmap2>(&record.body)) {
    AddPath(mmap2->filename);
  } else if (const auto* cgroup = std::get_if<perfdata::Cgroup>(&record.body)) {
    AddCgroup(cgroup->path);
  } else if (const auto* id = std::get_if<perfdata::HeaderBuildId>(&record.body)) {
    AddHomeOf(id->filename);  // of a pipe; a file has them as a feature
  }
}

void DenyList::AddFeatures(const perfdata::Features& features) {
  if (level_ < Level::kIdentity) return;
  Add(features.hostname);
  for (const perfdata::HeaderBuildId& id : features.build_ids) AddHomeOf(id.filename);
  AddArguments(features.cmdline);
}

TextSearch::TextSearch(const std::set<std::string>& texts)
    : texts_(texts.begin(), texts.end()), may_begin_(texts.empty() ? 0 : kSlots) {
  for (const std::string& text : texts_) may_begin_[SlotOf(AsBytes(text).data()) % kSlots] = true;
}

void TextSearch::Find(
    ByteView bytes, const std::function<void(size_t offset, std::string_view text)>& found) const {
  if (texts_.empty()) return;
  const std::string_view all = AsText(bytes);
  for (size_t i = 0; i + kShortest <= bytes.size(); ++i) {
    if (!may_begin_[SlotOf(bytes.data() + i) % kSlots]) continue;
    for (const std::string& text : texts_) {
      if (!all.substr(i).starts_with(text)) continue;
      const auto joined = [&](size_t left, size_t right) {
        return IsWordByte(bytes[left]) && IsWordByte(bytes[right]);
      };
      const size_t end = i + text.size();
      if ((i != 0 && joined(i - 1, i)) || (end < bytes.size() && joined(end - 1, end))) continue;
      found(i, text);
    }
  }
}

}  // namespace stackreel::anonymize
