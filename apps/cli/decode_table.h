#pragma once
// The steps of decode in text, a row each: what went in, what came out and how probable it was, the other candidates, the time,
// and the end of the reply so far. A long reply's middle rows are left out, and how many is said.

#include <deque>
#include <string>
#include <string_view>

#include "explanation.h"

namespace couplet::cli {

class DecodeTable {
 public:
  DecodeTable(const Tokenizer& tokenizer, int width) : tokenizer_(&tokenizer), width_(width) {}

  void show_names() const;
  // `reply`: all of it so far.
  void add(int number, const DecodeStep& step, std::string_view reply);
  void finish();  // the last rows, which were held back

 private:
  bool is_narrow() const;
  int token_width() const;
  int others_width() const;
  std::string others(const TokenChoice& choice, int width) const;
  std::string row(int number, const DecodeStep& step, std::string_view reply) const;

  const Tokenizer* tokenizer_;
  int width_;
  int num_rows_ = 0;
  std::deque<std::string> held_rows_;  // behind the first ones, the last of them
  std::size_t num_left_out_ = 0;
};

// On fewer columns than this, tables are drawn for narrow lines.
inline constexpr int kRoomy = 64;
// A token as the tables show it: "(end)" for one that ends the reply.
std::string out_text(const Tokenizer& tokenizer, TokenId id);
// At most six columns.
std::string short_percent(double share);
std::string without_end_spaces(std::string text);

}  // namespace couplet::cli
