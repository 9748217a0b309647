#pragma once
// A pre-tokenizer's regular expression as one table-driven matcher: the pattern becomes a finite automaton at
// load, and a word is found in one pass over its bytes, whatever they are. It finds what a backtracking
// engine finds (the first alternative that matches, greedy repeats) without ever going back to try another.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace couplet::text {

// What tokenizers count as a word's characters where no pattern of the file says so; a pattern's \w is another set.
inline constexpr std::string_view kWordCharacters =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189})";

class WordPattern {
 public:
  // Reads: characters and escapes, \p{L} \p{Lu} \P{L} \s \S \d \D \w \W . [classes] with ranges, ^, && and classes
  // in classes, (groups), (?i:without case), |, ? * + {m} {m,n}, and, as the end of an alternative, (?!x) with one
  // class x or $. Throws Error{unsupported} that names the rest.
  explicit WordPattern(std::string_view pattern);

  // Where the word ends that begins at `begin` (below text.size()); a character that begins none is a word of
  // its own. Adds the characters it read, those beyond the word's end too, to `characters_read`.
  std::size_t end_of_word(std::string_view text, std::size_t begin, std::size_t& characters_read) const;

  // The first match that begins at `from` or later; it is never empty. Without one [text.size(), text.size()).
  struct Match {
    std::size_t begin, end;
  };
  Match find(std::string_view text, std::size_t from, std::size_t& characters_read) const;

  // Calls `visit(at, match)` for the matches in turn; what lies before one is [at, match.begin), and the last call's match
  // may be empty. Throws Error{resource} for a pattern that looks so far ahead, again and again, that the time would no
  // longer grow with the text.
  template <typename Visit>
  void for_each_match(std::string_view text, std::size_t& characters_read, const Visit& visit) const {
    const std::size_t most = characters_read + kMaxReadings * (text.size() + 1);
    for (std::size_t at = 0; at < text.size();) {
      const Match match = find(text, at, characters_read);
      visit(at, match);
      at = match.end;
      if (characters_read > most) refuse_slow();
    }
  }

  // Whether every character begins a match.
  bool always_matches() const { return search_.empty(); }
  std::size_t num_states() const { return words_.size() / stride_; }

 private:
  static constexpr std::size_t kMaxReadings = 64;  // the patterns in use read a character at most three times
  [[noreturn]] static void refuse_slow();

  // [state][class]: the row of the next state << 1, and a flag; the class beyond the last is the end of the text.
  using Table = std::vector<std::uint32_t>;
  std::size_t class_at(const char* at, const char* end, std::size_t& length) const;
  const char* run(const Table& table, const char* at, const char* end, std::size_t& characters_read) const;
  const char* run_back(const char* begin, const char* at, const char* end, std::size_t& characters_read) const;

  std::vector<std::uint8_t> class_of_;  // [code point]
  std::size_t stride_ = 0;              // classes and the end
  Table words_;                         // matches that begin where it starts; flag: one ends before this character
  // Empty where every character begins a match.
  Table search_;  // like words_, for matches that begin there or later
  Table back_;    // from a match's end to its beginning; flag: one may begin with this character
};

}  // namespace couplet::text
