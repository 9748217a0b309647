#pragma once
// `couplet explain --choose`: lets whoever sits at standard input, or a pipe, pick the next token. A line a token: the
// number of a candidate, #ID for any token, nothing for what the engine would take; after the last line the engine goes on
// alone.

#include <functional>
#include <string>
#include <string_view>

#include "couplet/engine.h"

namespace couplet::cli {

class TokenChooser {
 public:
  // `ask` shows the candidates of a choice; none: nothing is printed, lines are read all the same.
  TokenChooser(const Tokenizer& tokenizer, int vocab_size, std::function<void(const TokenChoice&)> ask);

  // The id to take; -1: the engine's own.
  TokenId choose(const TokenChoice& choice);
  bool ended() const { return ended_; }
  const std::string& problem() const { return problem_; }  // why a line of a pipe could not be taken; "": none
  double waited_ms() const { return waited_ms_; }

  // What a line says, of so many candidates. "": `id` is it (-1: the engine's own); else what was expected.
  std::string read(std::string_view line, const TokenChoice& choice, TokenId& id) const;

 private:
  TokenId ask_until_answered(const TokenChoice& choice);
  void say(std::string_view text) const;
  bool next_line(std::string& line);

  const Tokenizer* tokenizer_;
  int vocab_size_;
  std::function<void(const TokenChoice&)> ask_;
  bool from_terminal_;
  std::string buffer_;
  int line_number_ = 0;
  bool ended_ = false;
  std::string problem_;
  double waited_ms_ = 0;
};

}  // namespace couplet::cli
