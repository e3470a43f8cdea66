#include "symbolize/near_names.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include "symbolize/symbol_table.h"
#include "symbolize/symbol_version.h"

namespace stackreel::symbolize {

namespace {

constexpr size_t kMost = 3;

std::string Lower(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// Edits from one to the other, or `limit` + 1 if there are more.
size_t Distance(std::string_view a, std::string_view b, size_t limit) {
  if (a.size() > b.size() + limit || b.size() > a.size() + limit) return limit + 1;
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    size_t least = row[0];
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
      least = std::min(least, row[j]);
    }
    if (least > limit) return limit + 1;
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> NearNames(std::string_view typed,
                                   std::span<const std::string_view> names) {
  std::string wanted;
  for (const char c : Lower(typed)) {
    if (std::string_view("*?[]^$|+().\\").find(c) == std::string_view::npos) wanted += c;
  }
  if (wanted.empty()) return {};
  // Two letters exchanged are two changes.
  const size_t limit = std::max<size_t>(wanted.size() / 3, wanted.size() < 4 ? 1 : 2);
  std::set<std::pair<size_t, std::string>> found;  // by how far
  for (const std::string_view name : names) {
    const std::string plain = Demangle(WithoutVersion(name), NameStyle::kName);
    const std::string lower = Lower(plain);
    size_t distance = Distance(wanted, lower, limit);
    if (distance > limit && lower.contains(wanted)) {
      distance = limit + lower.size() - wanted.size();
    } else if (distance > limit) {
      continue;
    }
    found.emplace(distance, plain);
    if (found.size() > kMost) found.erase(std::prev(found.end()));
  }
  std::vector<std::string> out;
  for (const auto& [distance, name] : found) out.push_back(name);
  return out;
}

}  // namespace stackreel::symbolize
