#include "anonymize/verify_text.h"

#include <algorithm>
#include <variant>

namespace stackreel::anonymize {
namespace {

constexpr size_t kShortest = 4;
constexpr size_t kSlots = size_t{1} << 16;

bool IsWordByte(uint8_t c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

void DenyList::Add(std::string_view text) {
  if (text.size() >= kShortest) texts_.emplace(text);
}

void DenyList::AddHomeOf(std::string_view path) {
  for (const std::string_view homes : {"/home/", "/Users/"}) {
    if (!path.starts_with(homes)) continue;
    const std::string_view rest = path.substr(homes.size());
    Add(rest.substr(0, rest.find('/')));
  }
}

void DenyList::AddRecord(const perfdata::Record& record) {
  if (level_ < Level::kIdentity) return;
  if (const auto* mmap = std::get_if<perfdata::Mmap>(&record.body)) {
    AddHomeOf(mmap->filename);
  } else if (const auto* mmap2 = std::get_if<perfdata::Mmap2>(&record.body)) {
    AddHomeOf(mmap2->filename);
  } else if (const auto* cgroup = std::get_if<perfdata::Cgroup>(&record.body)) {
    Add(cgroup->path);
  }
}

void DenyList::AddFeatures(const perfdata::Features& features) {
  if (level_ < Level::kIdentity) return;
  Add(features.hostname);
  for (const perfdata::HeaderBuildId& id : features.build_ids) AddHomeOf(id.filename);
  // The first words are the recorder's and its command's; a word of letters only is a command.
  for (const std::string& word : features.cmdline) {
    AddHomeOf(word);
    const bool is_option = word.starts_with('-');
    const bool is_name = std::ranges::all_of(
        word, [](char c) { return (c >= 'a' && c <= 'z') || c == '-' || c == '_'; });
    if (!is_option && !is_name && &word != &features.cmdline.front()) Add(word);
  }
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
