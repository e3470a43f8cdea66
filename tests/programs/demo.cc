// A small search engine: threads make documents, index their words, and answer queries. Enough of
// libstdc++ and libc takes part that its profile has a shape worth looking at.
// usage: demo SECONDS THREADS
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Posting {
  int document = 0;
  double weight = 0;
};

class Index {
 public:
  void Add(int document, const std::string& text) {
    std::map<std::string, int> counts;
    for (const std::string& word : Split(text)) ++counts[Stem(word)];
    for (const auto& [word, count] : counts) {
      postings_[word].push_back({document, 1 + std::log(count)});
    }
    ++documents_;
  }

  std::vector<Posting> Search(const std::string& query) const {
    std::unordered_map<int, double> scores;
    for (const std::string& word : Split(query)) {
      const auto found = postings_.find(Stem(word));
      if (found == postings_.end()) continue;
      const double rarity = std::log(1.0 + documents_ / static_cast<double>(found->second.size()));
      for (const Posting& posting : found->second) {
        scores[posting.document] += posting.weight * rarity;
      }
    }
    return Best(scores);
  }

 private:
  static std::vector<std::string> Split(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    return words;
  }
  static std::string Stem(const std::string& word) {
    static const std::regex kEnding("(ing|ed|s)$");
    return std::regex_replace(word, kEnding, "");
  }
  static std::vector<Posting> Best(const std::unordered_map<int, double>& scores) {
    std::vector<Posting> ranked;
    for (const auto& [document, score] : scores) ranked.push_back({document, score});
    std::sort(ranked.begin(), ranked.end(), [](const Posting& a, const Posting& b) {
      return a.weight != b.weight ? a.weight > b.weight : a.document < b.document;
    });
    if (ranked.size() > 10) ranked.resize(10);
    return ranked;
  }

  std::unordered_map<std::string, std::vector<Posting>> postings_;
  int documents_ = 0;
};

std::string MakeText(std::mt19937& random, int words) {
  static const char* const kStems[] = {"profil", "trac",   "sampl",  "stack", "frame",  "unwind",
                                       "record", "kernel", "thread", "cache", "branch", "load"};
  static const char* const kEndings[] = {"e", "ing", "ed", "s", ""};
  std::string text;
  for (int i = 0; i < words; ++i) {
    text += kStems[random() % std::size(kStems)];
    text += kEndings[random() % std::size(kEndings)];
    text += ' ';
  }
  return text;
}

std::atomic<long> g_answers{0};

void Serve(Clock::time_point end, unsigned seed) {
  std::mt19937 random(seed);
  Index index;
  for (int document = 0; Clock::now() < end; ++document) {
    index.Add(document, MakeText(random, 120));
    const std::function<size_t()> ask = [&] { return index.Search(MakeText(random, 3)).size(); };
    g_answers += static_cast<long>(ask());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 3;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 2;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(seconds);
  std::vector<std::thread> servers;
  for (int i = 0; i < threads; ++i) servers.emplace_back(Serve, end, 42 + i);
  for (std::thread& server : servers) server.join();
  std::printf("%ld answers\n", g_answers.load());
  return 0;
}
