#include "text/word_pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "couplet/error.h"
#include "text/pattern_parser.h"
#include "text/pretokenize.h"
#include "text/splitter.h"
#include "text/unicode_tables.h"
#include "text/utf8.h"

namespace couplet::text {
namespace {

std::vector<std::string> words_of(const PreTokenizer& pre, const std::string& text, std::size_t& read) {
  std::vector<Splitter> splitters;
  for (const std::string_view pattern : pre.patterns) {
    if (!pattern.empty()) splitters.emplace_back(pattern);
  }
  std::vector<std::string_view> pieces, before;
  cut(text, splitters, pieces, before, read);
  return {pieces.begin(), pieces.end()};
}

std::vector<std::string> words_of(std::string_view name, const std::string& text) {
  std::size_t read = 0;
  return words_of(find_pre_tokenizer(name), text, read);
}

// What the automaton must agree with: a backtracking matcher that follows the pattern's tree, as slow as it
// is plain.
class Backtracking {
 public:
  explicit Backtracking(std::string_view pattern) : parsed_(parse_pattern(pattern)) {}

  // The matches in turn, and what lies between them.
  std::vector<std::string> pieces(const std::string& text) const {
    std::vector<std::string> pieces;
    std::size_t between = 0, begin = 0;
    const auto put = [&](std::size_t from, std::size_t to) {
      if (from < to) pieces.push_back(text.substr(from, to - from));
    };
    while (begin < text.size()) {
      std::size_t end = begin;
      match(parsed_.root, text, begin, [&](std::size_t at) {
        end = at;
        return true;
      });
      if (end == begin) {
        begin += char_at(text, begin).length;
        continue;
      }
      put(between, begin);
      put(begin, end);
      between = begin = end;
    }
    put(between, begin);
    return pieces;
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

const std::vector<std::string> kNames = {"gpt-2",          "smollm",       "llama-bpe", "qwen2",      "gpt-4o",
                                         "tekken",         "falcon",       "bloom",     "viking",     "deepseek-v3",
                                         "deepseek-coder", "deepseek-llm", "bailingmoe", "seed-coder"};

TEST(WordPattern, FindsWhatBacktrackingFinds) {
  std::vector<std::string> patterns;
  for (const std::string& name : kNames) {
    for (const std::string_view pattern : find_pre_tokenizer(name).patterns) {
      if (!pattern.empty()) patterns.emplace_back(pattern);
    }
  }
  // Alternatives in the "wrong" order, nested groups, counts, classes in classes, lines' ends, gaps between matches.
  patterns.insert(patterns.end(),
                  {R"(a|ab|abc)", R"((?:a|ab)(?:c|x)?|\s)", R"(\p{N}{2,3}|\p{L}{2}|\s+(?!\S))", R"((?:(?:a*b)*x)+|\S)",
                   R"(b\s+|ab)", R"(\s+$|x.)", R"(a(?![^\s\d])|xab|\W\w)", R"([\P{L}&&[^\s\p{N}]]+)",
                   R"([a-z&&[^aeiou]]{2}|[\S\n]\D)", R"((?i)ab|[\x{41}-\u005A\x21])", R"((\s*\n)+x?|\p{^L} )"});
  std::mt19937 random(1);
  for (const std::string& text : patterns) {
    const std::vector<Splitter> splitter = {Splitter(text)};
    const Backtracking oracle(text);
    for (int i = 0; i < 300; ++i) {
      const std::string sample = random_text(random, 24);
      std::size_t read = 0;
      std::vector<std::string_view> pieces, before;
      cut(sample, splitter, pieces, before, read);
      const std::vector<std::string> found(pieces.begin(), pieces.end());
      ASSERT_EQ(found, oracle.pieces(sample)) << text << "\n" << sample;
    }
  }
}

TEST(WordPattern, ReadsEachCharacterAtMostThreeTimes) {
  std::vector<std::string> hard = {"A",   "1",  " ",  "\n",      "'",    "é",   "😀", " \n",
                                   "\n ", "a ", "' ", "\r\n \r", "\x80", "  1", "'r", ".\n"};
  std::mt19937 random(2);
  for (int i = 0; i < 40; ++i) hard.push_back(random_text(random, 5));
  for (const std::string& name : kNames) {
    for (const std::string& part : hard) {
      std::string text;
      while (text.size() < 20000) text += part;
      std::size_t read = 0;
      const auto words = words_of(find_pre_tokenizer(name), text, read);
      const auto num_steps = static_cast<std::size_t>(
          std::ranges::count_if(find_pre_tokenizer(name).patterns, [](auto pattern) { return !pattern.empty(); }));
      EXPECT_LE(read, 3 * num_steps * text.size()) << name << " on " << part;
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
  // Digits that Unicode 17 brought: an end to GPT-2's pattern as "1" is.
  for (const std::string digit : {"1", "\U00011DE0", "\U00011DE7", "\U00016FF4", "\U00016FF6"})
    EXPECT_EQ(words_of("smollm", "\n " + digit + digit + "!a " + digit), (Words{"\n ", digit, digit, "!", "a", " ", digit}));
  EXPECT_EQ(words_of("smollm", "\n \U00016FF7!"), (Words{"\n", " \U00016FF7!"}));
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

TEST(PreTokenizer, CutsInSteps) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words_of("deepseek-v3", "a1234 漢字かなx#tag #"),
            (Words{"a", "123", "4", " ", "漢字かな", "x", "#tag", " #"}));
  EXPECT_EQ(words_of("falcon", "it's 1234567!?"), (Words{"it", "'", "s", " ", "123", "456", "7", "!?"}));
  EXPECT_EQ(words_of("deepseek-llm", "ab  \n 12x "), (Words{"ab", "  ", "\n", " ", "12", "x", " "}));
  EXPECT_EQ(words_of("viking", "Hei, 12 ja"), (Words{"Hei", ",", " ", "1", "2", " ja"}));
  EXPECT_EQ(words_of("gpt-4o", "HelloWorld'S/\n/ 1234"), (Words{"Hello", "World'S", "/\n/", " ", "123", "4"}));
  EXPECT_EQ(words_of("tekken", "HelloWorld's 12"), (Words{"Hello", "World", "'s", " ", "1", "2"}));
}

TEST(Splitter, PutsMatchesWhereTheyBelong) {
  using Words = std::vector<std::string>;
  const auto split = [](SplitBehaviour behaviour, bool invert, std::string_view text) {
    std::vector<std::string_view> pieces, before;
    std::size_t read = 0;
    cut(text, {Splitter("-", behaviour, invert)}, pieces, before, read);
    return Words(pieces.begin(), pieces.end());
  };
  constexpr std::string_view kText = "-the-final--countdown";
  EXPECT_EQ(split(SplitBehaviour::removed, false, kText), (Words{"the", "final", "countdown"}));
  EXPECT_EQ(split(SplitBehaviour::isolated, false, kText), (Words{"-", "the", "-", "final", "-", "-", "countdown"}));
  EXPECT_EQ(split(SplitBehaviour::contiguous, false, kText), (Words{"-", "the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(split(SplitBehaviour::merged_with_previous, false, kText),
            (Words{"-", "the-", "final-", "-", "countdown"}));
  EXPECT_EQ(split(SplitBehaviour::merged_with_next, false, kText), (Words{"-the", "-final", "-", "-countdown"}));
  EXPECT_EQ(split(SplitBehaviour::removed, true, kText), (Words{"-", "-", "-", "-"}));
  EXPECT_EQ(split(SplitBehaviour::contiguous, true, kText), (Words{"-", "the", "-", "final", "--", "countdown"}));
  EXPECT_EQ(split(SplitBehaviour::merged_with_next, true, "a-b"), (Words{"a-", "b"}));
}

TEST(Splitter, EndsAPatternThatReadsTooOften) {
  std::vector<std::string_view> pieces, before;
  std::size_t read = 0;
  const std::vector<Splitter> steps = {Splitter("a*b|a")};
  EXPECT_THROW(cut(std::string(20000, 'a'), steps, pieces, before, read), Error);
  EXPECT_LE(read, 66U * 20001U);
  // Not finding a match again and again reads the text but once.
  read = 0;
  cut(std::string(20000, ' ') + "x", {Splitter(R"(\s+$|y)")}, pieces, before, read);
  EXPECT_LE(read, 2U * 20002U);
}

TEST(WordPattern, RefusesWhatItDoesNotRead) {
  for (const char* pattern :
       {"(",     ")",      "(?=a)",  "(?!",    "(?!a)b",   "a(?!b",     "[",    "[a",       "[]",         "[b-a]",
        "[[a]",  "a{",     "a{2",    "a{3,2}", "a{1000}",  "a*?",       "a++",  "*",        "+a",         "^a",
        "a$b",   "(?<=a)", "(?>a)",  "\\",     "\\b",      "\\p{",      "\\A",  "\\p{Xx}",  "\\p{}",      "\\p{Han}",
        "\\pL",  "(a",     "(?i:a",  "a{,2}",  "(?i:é)",   "[[:alpha:]]", "a*",   "a|b?",     "\\x{110000}", "\\xg0",
        "\\u12", "(?:(?!a))*",       "(?:a{100}){100}{100}"}) {
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
