#pragma once
// How a token is spelt in a reply's logprobs.

#include <string>

#include "couplet/stats.h"
#include "couplet/tokenizer.h"
#include "server/json.h"

namespace couplet::server {

// {"token", "logprob", "bytes"}: part of a character reads U+FFFD, and the bytes are the true ones; null for a control token,
// which adds none to the text. With "top_logprobs" for a choice.
Json chat_token(const Tokenizer& tokenizer, TokenId id, float log_probability);
Json chat_token(const Tokenizer& tokenizer, const TokenChoice& choice, int num_alternatives);

// As completions have it: part of a character reads "bytes:\xe2\x80", so that two of them differ.
std::string completion_token(const Tokenizer& tokenizer, TokenId id);

// Where tokens begin in a text, in characters: whole ones that came before.
class TextOffsets {
 public:
  explicit TextOffsets(const Tokenizer& tokenizer, std::size_t start = 0, bool special = false)
      : detokenizer_(tokenizer, special), num_characters_(start) {}
  std::size_t next(TokenId id);  // of this token
  std::size_t finish();          // the text's length

 private:
  Detokenizer detokenizer_;
  std::string text_;
  std::size_t num_characters_;
};

std::size_t num_characters(std::string_view text);  // of valid UTF-8

}  // namespace couplet::server
