#pragma once
// What `couplet explain` found out as text, printed part after part while the run goes on.

#include <span>
#include <string>
#include <string_view>

#include "decode_table.h"
#include "explanation.h"

namespace couplet::cli {

class ExplainView {
 public:
  ExplainView(const Engine& engine, const Explanation& explanation);

  void show_prompt() const;
  void show_prefill() const;               // once its token is chosen
  void show_step(std::string_view reply);  // the last of the run's steps
  void show_end();                         // why it stopped, the comparison and the roofline
  void show_what_if() const;

  // --choose: the candidates for the next token, numbered, before one is taken.
  void show_candidates(const TokenChoice& choice) const;

 private:
  void show_pieces(std::span<const TokenId> ids) const;
  void show_first(std::string_view head, std::string_view left, std::string_view right) const;
  void show_distribution(const TokenChoice& first) const;
  void show_choice() const;
  void show_comparison() const;
  void show_roofline() const;
  void show_parting(const WhatIf& what_if) const;
  std::string quoted(TokenId id) const;
  void line(std::string_view text) const;  // below a heading, over as many lines as it needs

  const Engine* engine_;
  const Tokenizer* tokenizer_;
  const Explanation* explanation_;
  int width_;
  DecodeTable table_;
};

}  // namespace couplet::cli
