#pragma once
// What chat_prompt() is made of. A message's control spellings are marked before the template runs: a mark (a
// character that occurs nowhere) is put inside each, so what the template renders still shows which came from
// a message. The rendered text is then cut at the unmarked control tokens, and the marks are taken out of
// what lies between.

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "couplet/tokenizer.h"

namespace couplet::engine {

// The texts that tokenize(special) reads as one control token.
class ControlSpellings {
 public:
  explicit ControlSpellings(const Tokenizer& tokenizer);

  struct Match {
    std::size_t length = 0;  // 0: no control token begins here
    TokenId id = -1;
  };
  Match longest_at(std::string_view text, std::size_t begin) const;

 private:
  std::unordered_map<std::string, TokenId> ids_;
  std::vector<std::size_t> lengths_;  // descending
  bool first_bytes_[256] = {};
};

// `text` with `mark` after the first character of every control spelling, overlapping ones included.
std::string mark_controls(std::string_view text, const ControlSpellings& spellings, std::string_view mark);

// Ids of rendered text: unmarked control spellings are control tokens, all else is text.
std::vector<TokenId> tokenize_marked(const Tokenizer& tokenizer, const ControlSpellings& spellings,
                                     std::string_view text, std::string_view mark);

}  // namespace couplet::engine
