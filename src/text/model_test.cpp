// BPE and unigram as a tokenizer.json has them: how their work grows, which is counted and not timed.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/bpe_model.h"
#include "text/unigram_model.h"

namespace couplet::text {
namespace {

Vocabulary make_vocabulary(const std::vector<std::string>& texts) {
  Vocabulary vocabulary;
  for (const std::string& text : texts) {
    vocabulary.texts.add(text);
    vocabulary.bytes.add(text);
    vocabulary.kinds.push_back(TokenKind::normal);
  }
  return vocabulary;
}

std::string repeat(std::string_view part, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += part;
  return text;
}

constexpr std::size_t kWordBytes = std::size_t{1} << 20U;

// The work for a word of one megabyte is at most `factor` times that for a sixteenth of it; both are one word.
template <typename Work>
void expect_growth(double factor, const Work& work) {
  for (const char* part : {"a", "aab", "abcdefgh"}) {
    const auto small = static_cast<double>(work(repeat(part, kWordBytes / 16)));
    const auto large = static_cast<double>(work(repeat(part, kWordBytes)));
    EXPECT_GT(small, 0) << part;
    EXPECT_LE(large, factor * small) << part;
  }
}

TEST(BpeModel, WorkGrowsWithTheWord) {
  const Vocabulary vocabulary = make_vocabulary({"a", "b", "aa", "aaaa", "aaaaaaaa", "ab", "abab", "aab", "c", "cd", "d"});
  const BpeModel model(vocabulary, std::vector<bool>(11, true),
                       {{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}, {"a", "b"}, {"ab", "ab"}, {"aa", "b"}, {"c", "d"}}, {});
  expect_growth(17, [&](const std::string& word) {
    ModelScratch scratch(0);
    std::vector<TokenId> ids;
    model.append(word, scratch, ids);
    return scratch.merge.lookups;
  });
}

TEST(UnigramModel, WorkGrowsWithTheWord) {
  const Vocabulary vocabulary = make_vocabulary({"a", "b", "aa", "aaaa", "aaaaaaaa", "ab", "abab", "bcd"});
  const UnigramModel model(vocabulary, std::vector<bool>(8, true), {{-1, -1, -1.5, -2, -3, -1.25, -2, -4}, -14}, false);
  expect_growth(17, [&](const std::string& word) {
    ModelScratch scratch(0);
    std::vector<TokenId> ids;
    model.append(word, scratch, ids);
    return scratch.offers;
  });
}

}  // namespace
}  // namespace couplet::text
