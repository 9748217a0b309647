#include "text/merge.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace couplet::text {
namespace {

// Merges over single letters, as text: what two spell together -> rank.
using Ranks = std::map<std::string, std::uint32_t>;

struct Finder {
  const Ranks* ranks;
  std::string_view word;
  Merge operator()(const Symbol& left, const Symbol& right) const {
    const auto found = ranks->find(std::string(word.substr(left.begin, left.length + right.length)));
    if (found == ranks->end()) return {};
    return {found->second, static_cast<TokenId>(found->second)};
  }
};

std::vector<Symbol> letters(std::string_view word) {
  std::vector<Symbol> symbols;
  for (std::uint32_t i = 0; i < word.size(); ++i) symbols.push_back({i, 1, -1});
  return symbols;
}

std::vector<std::string> spelled(const std::vector<Symbol>& symbols, std::string_view word) {
  std::vector<std::string> parts;
  for (const Symbol& symbol : symbols) parts.emplace_back(word.substr(symbol.begin, symbol.length));
  return parts;
}

// The definition: join the leftmost of the best pairs until there is none.
std::vector<std::string> merge_plainly(const Ranks& ranks, std::string_view word) {
  std::vector<std::string> parts;
  for (const char letter : word) parts.emplace_back(1, letter);
  while (true) {
    std::size_t best = parts.size();
    std::uint32_t best_rank = Merge::kNone;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = ranks.find(parts[i] + parts[i + 1]);
      if (found != ranks.end() && found->second < best_rank) {
        best = i;
        best_rank = found->second;
      }
    }
    if (best == parts.size()) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::string random_word(std::mt19937& random, std::size_t length) {
  std::string word;
  for (std::size_t i = 0; i < length; ++i) word += static_cast<char>('a' + random() % 3);
  return word;
}

TEST(Merge, BothWaysFollowTheDefinition) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    Ranks ranks;
    for (std::size_t i = random() % 60; i > 0; --i) {
      ranks[random_word(random, 2 + random() % 5)] =
          static_cast<std::uint32_t>(random() % 20);  // many equal ranks
    }
    for (int i = 0; i < 10; ++i) {
      const std::string word = random_word(random, random() % 80);
      const auto right = merge_plainly(ranks, word);
      MergeScratch scratch;
      scratch.symbols = letters(word);
      merge_by_queue(scratch, Finder{&ranks, word});
      ASSERT_EQ(spelled(scratch.symbols, word), right) << word;
      if (word.size() > kMaxScanned) continue;
      scratch.symbols = letters(word);
      merge_by_scanning(scratch, Finder{&ranks, word});
      ASSERT_EQ(spelled(scratch.symbols, word), right) << word;
    }
  }
}

TEST(Merge, WorkGrowsWithTheWord) {
  const Ranks ranks = {{"aa", 0}, {"aaaa", 1}, {"ab", 2}, {"bb", 3}, {"abab", 4}, {"ba", 5}};
  for (const std::string part : {"a", "ab", "aab", "b", "c"}) {
    for (const std::size_t length : {std::size_t{2}, std::size_t{33}, std::size_t{100000}}) {
      std::string word;
      while (word.size() < length) word += part;
      MergeScratch scratch;
      scratch.symbols = letters(word);
      merge_symbols(scratch, Finder{&ranks, word});
      EXPECT_LE(scratch.lookups, 3 * word.size()) << part;  // a look-up a pair at first, two a merge
    }
  }
}

}  // namespace
}  // namespace couplet::text
