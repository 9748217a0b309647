#pragma once
// What `couplet explain` found out and how it looks as text. Every figure here was measured in the run that
// is shown.

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "chat_prompter.h"
#include "couplet/engine.h"
#include "couplet/machine.h"
#include "generate.h"
#include "stage_cost.h"

namespace couplet::cli {

struct DecodeStep {
  TokenId in = -1;
  TokenChoice choice;
  double ms = 0;
  std::string text;  // what became certain with it
};

struct Explanation {
  std::vector<TokenId> prompt;
  std::size_t own_begin = 0, own_end = 0;  // the user's own tokens; empty: they can't be told apart
  bool templated = false;
  bool has_system = false;
  SamplingOptions sampling;
  MachinePeaks peaks;
  StageCost prefill, decode;
  TokenChoice first;  // what prefill led to; id -1: no token
  std::vector<DecodeStep> steps;
  Reply reply;
};

// Marks the tokens that the user's own text became: those that differ from the same conversation's around
// another text. None where a template does more with the text than trim it.
void find_own_tokens(const Tokenizer& tokenizer, const ChatPrompter& prompter, std::string_view system,
                     std::string_view text, Explanation& explanation);

// Prints part after part while the run goes on. A long reply's middle rows are left out, and how many is
// said.
class ExplainView {
 public:
  ExplainView(const Engine& engine, const Explanation& explanation);

  void show_prompt() const;
  void show_prefill() const;               // once its token is chosen
  void show_step(std::string_view reply);  // the last of explanation.steps
  void show_end();                         // why it stopped, the comparison and the roofline

 private:
  void show_pieces(std::span<const TokenId> ids) const;
  void show_first(std::string_view head, std::string_view left, std::string_view right) const;
  void show_distribution() const;
  void show_choice() const;
  std::string chosen_how() const;
  std::string step_row(std::string_view reply) const;
  bool is_narrow() const;
  int token_width() const;
  int others_width() const;
  std::string others(const TokenChoice& choice, int width) const;
  std::string out_text(TokenId id) const;
  void show_comparison() const;
  void show_roofline() const;
  void line(std::string_view text) const;  // below a heading, over as many lines as it needs

  const Engine* engine_;
  const Tokenizer* tokenizer_;
  const Explanation* explanation_;
  int width_;
  std::deque<std::string> held_rows_;  // behind the first ones, the last of them
  std::size_t num_left_out_ = 0;
};

}  // namespace couplet::cli
