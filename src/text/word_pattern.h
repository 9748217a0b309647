#pragma once
// A pre-tokenizer's regular expression as one table-driven matcher: the pattern becomes a finite automaton at
// load, and a word is found in one pass over its bytes, whatever they are. It finds what a backtracking
// engine finds (the first alternative that matches, greedy repeats) without ever going back to try another.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace couplet::text {

class WordPattern {
 public:
  // Reads: characters, \p{L} \p{Lu} \s \S \r \n \t, [classes] with ranges and ^, (?:groups), (?i:without
  // case), |, ? * + {m} {m,n}, and (?!x) with one class x as the end of an alternative. Throws
  // Error{unsupported} for the rest.
  explicit WordPattern(std::string_view pattern);

  // Where the word ends that begins at `begin` (below text.size()); a character that begins none is a word of
  // its own. Adds the characters it read, those beyond the word's end too, to `characters_read`.
  std::size_t end_of_word(std::string_view text, std::size_t begin, std::size_t& characters_read) const;

  std::size_t num_states() const { return table_.size() / stride_; }

 private:
  // A table entry: the row of the next state << 1, and whether a word ends before the character just read.
  static constexpr std::uint32_t kEndsBefore = 1;
  std::vector<std::uint8_t> class_of_;  // [code point]
  std::vector<std::uint32_t> table_;    // [state][class], the class beyond the last is the end of the text
  std::size_t stride_ = 0;              // classes and the end
};

}  // namespace couplet::text
