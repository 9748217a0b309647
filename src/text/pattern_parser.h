#pragma once
// The text of a pre-tokenizer's pattern as a tree, the first half of making a WordPattern of it.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace couplet::text {

// A set of code points: ranges and general categories, or all but those.
struct CharSet {
  std::vector<std::pair<char32_t, char32_t>> ranges;  // both ends within; ascending and apart once sorted
  std::uint32_t categories = 0;                       // bit i: category i of kCategoryNames
  bool negated = false;

  void sort();
  bool contains(char32_t code_point, std::uint32_t category) const;  // sorted
  bool operator==(const CharSet&) const = default;
};

struct PatternNode {
  enum Kind : std::uint8_t { one_of, sequence, either, repeat, not_next };
  Kind kind = sequence;
  std::uint32_t set = 0;  // one_of, not_next: index of the CharSet
  int min = 1, max = 1;   // repeat; max -1: no bound
  std::vector<PatternNode> children = {};
};

struct ParsedPattern {
  PatternNode root;
  std::vector<CharSet> sets;
};

// Throws Error{unsupported} with the place of what it doesn't read.
ParsedPattern parse_pattern(std::string_view pattern);

}  // namespace couplet::text
