// Regular expressions: deep templates of the library, and what is found by them.
#include <cstdio>
#include <regex>
#include <string>

namespace {

int CountOf(const std::string& text, const std::regex& pattern) {
  int count = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) ++count;
  return count;
}

std::string Swapped(const std::string& text) {
  return std::regex_replace(text, std::regex("(a|b)=(.)"), "$2=$1");
}

}  // namespace

int main() {
  const int words = CountOf("abb, c, b", std::regex("ab*|c"));
  const std::string swapped = Swapped("a=1");
  std::printf("%d %s\n", words, swapped.c_str());
  return words == 2 && swapped == "1=a" ? 0 : 1;
}
