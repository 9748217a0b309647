#include "text/word_pattern.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "couplet/error.h"
#include "text/pattern_parser.h"
#include "text/pretokenize.h"
#include "text/unicode_tables.h"
#include "text/utf8.h"

namespace couplet::text {
namespace {

std::vector<std::string> words_of(const WordPattern& pattern, const std::string& text, std::size_t& read) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = pattern.end_of_word(text, begin, read);
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

std::vector<std::string> words_of(std::string_view name, const std::string& text) {
  std::size_t read = 0;
  return words_of(WordPattern(find_pre_tokenizer(name).pattern), text, read);
}

// What the automaton must agree with: a backtracking matcher that follows the pattern's tree, as slow as it
// is plain.
class Backtracking {
 public:
  explicit Backtracking(std::string_view pattern) : parsed_(parse_pattern(pattern)) {}

  std::vector<std::string> words(const std::string& text) const {
    std::vector<std::string> words;
    for (std::size_t begin = 0; begin < text.size();) {
      std::size_t end = begin;
      match(parsed_.root, text, begin, [&](std::size_t at) {
        end = at;
        return true;
      });
      if (end == begin) end += char_at(text, begin).length;
      words.push_back(text.substr(begin, end - begin));
      begin = end;
    }
    return words;
  }

 private:
  using Then = std::function<bool(std::size_t)>;

  static Utf8Char char_at(const std::string& text, std::size_t at) {
    return read_char(text.data() + at, text.data() + text.size());
  }
  bool in_set(std::uint32_t set, const std::string& text, std::size_t at) const {
    if (at == text.size()) return false;
    const char32_t code_point = char_at(text, at).code_point;
    std::size_t range = 0;
    while (range + 1 < kNumCategoryRanges && kCategoryRanges[range + 1] >> 5U <= code_point) ++range;
    return parsed_.sets[set].contains(code_point, kCategoryRanges[range] & 31U);
  }

  bool match(const PatternNode& node, const std::string& text, std::size_t at, const Then& then) const {
    switch (node.kind) {
      case PatternNode::one_of:
        return in_set(node.set, text, at) && then(at + char_at(text, at).length);
      case PatternNode::not_next:
        return !in_set(node.set, text, at) && then(at);
      case PatternNode::sequence:
        return match_sequence(node, 0, text, at, then);
      case PatternNode::either:
        for (const PatternNode& child : node.children) {
          if (match(child, text, at, then)) return true;
        }
        return false;
      case PatternNode::repeat:
        return match_repeat(node, 0, text, at, then);
    }
    return false;
  }
  bool match_sequence(const PatternNode& node, std::size_t child, const std::string& text, std::size_t at,
                      const Then& then) const {
    if (child == node.children.size()) return then(at);
    return match(node.children[child], text, at,
                 [&](std::size_t next) { return match_sequence(node, child + 1, text, next, then); });
  }
  bool match_repeat(const PatternNode& node, int count, const std::string& text, std::size_t at,
                    const Then& then) const {
    const bool may_go_on = node.max < 0 || count < node.max;
    const auto again = [&](std::size_t next) {
      return (next > at || count < node.min) && match_repeat(node, count + 1, text, next, then);
    };
    if (may_go_on && match(node.children[0], text, at, again)) return true;
    return count >= node.min && then(at);
  }

  ParsedPattern parsed_;
};

// Texts made of what the patterns tell apart.
std::string random_text(std::mt19937& random, std::size_t max_parts) {
  static const std::vector<std::string> kParts = {
      " ",        "  ",     "\n", "\r\n", "\t", "\u00A0", "\u3000", "\u0085", "'",       "'s",   "'LL",
      "'re",      "\u017F", "a",  "Z",    "ab", "é",      "Ж",      "漢",     "e\u0301", "1",    "23",
      "٣",        "Ⅷ",      "½",  ".",    "!?", "_",      "-",      "😀",     "\x04",    "\xF1", "\x80",
      "\xE6\x97", "\uFFFD", "{",  "}",    "/",  "x",      "don",    "S",      "\u2028",  "0"};
  std::string text;
  for (std::size_t i = random() % max_parts + 1; i > 0; --i) text += kParts[random() % kParts.size()];
  return text;
}

const std::vector<std::string> kNames = {"gpt-2", "smollm", "llama-bpe", "qwen2"};

TEST(WordPattern, FindsWhatBacktrackingFinds) {
  std::vector<std::string> patterns;
  for (const std::string& name : kNames) patterns.emplace_back(find_pre_tokenizer(name).pattern);
  // Alternatives in the "wrong" order, nested groups, counts, and the pattern of OpenAI's o200k.
  patterns.insert(
      patterns.end(),
      {R"(a|ab|abc)", R"((?:a|ab)(?:c|x)?|\s)", R"(\p{N}{2,3}|\p{L}{2}|\s+(?!\S))", R"((?:(?:a*b)*x)+|\S)",
       R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
       R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
       R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"});
  std::mt19937 random(1);
  for (const std::string& text : patterns) {
    const WordPattern pattern(text);
    const Backtracking oracle(text);
    for (int i = 0; i < 300; ++i) {
      const std::string sample = random_text(random, 24);
      std::size_t read = 0;
      ASSERT_EQ(words_of(pattern, sample, read), oracle.words(sample)) << text << "\n" << sample;
    }
  }
}

TEST(WordPattern, ReadsEachCharacterAtMostThreeTimes) {
  std::vector<std::string> hard = {"A",   "1",  " ",  "\n",      "'",    "é",   "😀", " \n",
                                   "\n ", "a ", "' ", "\r\n \r", "\x80", "  1", "'r", ".\n"};
  std::mt19937 random(2);
  for (int i = 0; i < 40; ++i) hard.push_back(random_text(random, 5));
  for (const std::string& name : kNames) {
    const WordPattern pattern(find_pre_tokenizer(name).pattern);
    for (const std::string& part : hard) {
      std::string text;
      while (text.size() < 20000) text += part;
      std::size_t read = 0;
      words_of(pattern, text, read);
      EXPECT_LE(read, 3 * text.size()) << name << " on " << part;
    }
  }
}

TEST(PreTokenizer, CutsAsItsModelDoes) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words_of("gpt-2", "don't DON'T"), (Words{"don", "'t", " DON", "'", "T"}));
  EXPECT_EQ(words_of("gpt-2", "x  1234"), (Words{"x", " ", " 1234"}));
  EXPECT_EQ(words_of("smollm", "x  12"), (Words{"x", "  ", "1", "2"}));
  EXPECT_EQ(words_of("smollm", "a\n\n\nb"), (Words{"a", "\n\n", "\n", "b"}));
  EXPECT_EQ(words_of("smollm", "a   "), (Words{"a", "   "}));
  EXPECT_EQ(words_of("llama-bpe", "DON'T 12345!\n\n x"),
            (Words{"DON", "'T", " ", "123", "45", "!\n\n", " x"}));
  EXPECT_EQ(words_of("llama-bpe", "it'\u017Fo"),
            (Words{"it", "'\u017F", "o"}));  // the long s is an s in another case
  EXPECT_EQ(words_of("qwen2", "(a) 12  \n b"), (Words{"(a", ")", " ", "1", "2", "  \n", " b"}));
}

TEST(PreTokenizer, AnUnknownNameIsAnErrorThatListsTheKnown) {
  try {
    find_pre_tokenizer("new\nstyle");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    const std::string message = error.what();
    EXPECT_NE(message.find("smollm"), std::string::npos) << message;
    EXPECT_NE(message.find(R"("new\x0astyle")"), std::string::npos) << message;
  }
}

TEST(WordPattern, RefusesWhatItDoesNotRead) {
  for (const char* pattern : {"(",          ")",       "(?=a)",
                              "(?!",        "(?!a)b",  "a(?!b",
                              "[",          "[a",      "[]",
                              "[b-a]",      "[[a]]",   "a{",
                              "a{2",        "a{3,2}",  "a{1000}",
                              "a*?",        "a++",     "*",
                              "+a",         "^a",      "a$",
                              ".",          "\\",      "\\b",
                              "\\p{",       "\\p{Xx}", "\\p{}",
                              "\\pL",       "(a)",     "(?i:a",
                              "(?:(?!a))*", "a{,2}",   "(?:a{100}){100}{100}"}) {
    try {
      const WordPattern made(pattern);
      ADD_FAILURE() << pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported) << pattern;
    }
  }
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "(?:";
  EXPECT_THROW(WordPattern{deep}, Error);
  EXPECT_THROW(WordPattern{"(?:a?){100}(?:(?:b{90}){90}){90}"}, Error);
  EXPECT_THROW(WordPattern{"(?:a|b)*a(?:a|b){20}"}, Error);  // 2^20 states
}

}  // namespace
}  // namespace couplet::text
