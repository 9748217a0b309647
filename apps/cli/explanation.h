#pragma once
// What `couplet explain` found out: the prompt, what each step did, and what would have come of another token. Every figure
// was measured in the run that is shown.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat_prompter.h"
#include "couplet/engine.h"
#include "couplet/machine.h"
#include "generate.h"
#include "roofline.h"
#include "story/stage_cost.h"

namespace couplet::cli {

using story::StageCost;

struct DecodeStep {
  TokenId in = -1;
  TokenChoice choice;
  int position = 0;  // of `in`: so many came before it
  double ms = 0;
  std::string text;  // what became certain with it
};

// One way from the prompt to a stop.
struct ExplainedRun {
  StageCost prefill, decode;
  TokenChoice first;  // what prefill led to; id -1: no token
  std::string first_text;
  std::vector<DecodeStep> steps;
  std::vector<StepRecord> records;  // of all steps
  Reply reply;

  // Takes in a step. True once prefill has led to its token.
  bool take(const StepView& view);
  // What step `number` chose: 0 is prefill's, those behind it are decode's.
  const TokenChoice& choice(int number) const;
  int num_choices() const;
  std::string text_up_to(int number) const;  // of the choices before `number`
  // Positions that decode read from the cache; without one, each step would run them again.
  std::uint64_t positions_not_run_again() const;
};

// The run again, with another token from step `step` on.
struct WhatIf {
  int step = 0;
  TokenId id = -1;
  ExplainedRun run;
};

struct Explanation {
  std::vector<TokenId> prompt;
  std::size_t own_begin = 0, own_end = 0;  // the user's own tokens; empty: they can't be told apart
  bool templated = false;
  bool has_system = false;
  bool chosen_by_user = false;  // --choose
  SamplingOptions sampling;
  MachinePeaks peaks;
  ExplainedRun run;
  std::optional<WhatIf> what_if;
};

// Marks the tokens that the user's own text became: those that differ from the same conversation's around
// another text. None where a template does more with the text than trim it.
void find_own_tokens(const Tokenizer& tokenizer, const ChatPrompter& prompter, std::string_view system,
                     std::string_view text, Explanation& explanation);

// The settings that move a token's place among the others, in words; empty: all are off.
std::string shaping(const SamplingOptions& sampling);
// How the run's first token came about: "the best one", "drawn from 23 candidates", ...
std::string chosen_how(const Explanation& explanation, const TokenChoice& choice);
// The two stages side by side, in words.
struct ComparisonRow {
  std::string name, prefill, decode;
};
std::vector<ComparisonRow> comparison(const Explanation& explanation);
// Of the stages that ran.
std::vector<RooflinePoint> roofline_points(const Explanation& explanation);
// What the replay did not have to run, by what it cost the first time.
std::string saved_by_cache(const Explanation& explanation);
// "9.2 G", "880 M".
std::string operations(double number);
std::string per_byte(double number);
std::string count(std::uint64_t number, std::string_view one, std::string_view many);
bool is_greedy(const SamplingOptions& sampling);

}  // namespace couplet::cli
