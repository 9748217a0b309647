#pragma once
// The figures of one reply: tokens and times of each stage, gathered step by step, told in usage, timings, progress and
// ledger, and in the end to the metrics.

#include <chrono>
#include <vector>

#include "server/engine_host.h"
#include "server/json.h"
#include "server/metrics.h"
#include "server/served_model.h"

namespace couplet::server {

class ReplyFigures {
 public:
  void begin(std::vector<int> prompt_tokens, int num_choices);  // of each prompt; choices of each
  void note_submitted() { submitted_ = Clock::now(); }
  // `counts`: the token belongs to the reply.
  void note(const StepPart& part, bool counts);

  Json usage() const;
  Json timings() const;                            // llama.cpp's names
  Json progress(const StepPart& part) const;       // of a prefill step
  RequestFigures request_figures() const;          // times and tokens alone

 private:
  struct Choice {
    int cached = 0, prefilled = 0, completion = 0;
  };
  int prompt_tokens() const;
  int cached_tokens() const;

  std::vector<int> prompt_tokens_;
  std::size_t num_choices_ = 1;
  std::vector<Choice> choices_;
  Clock::time_point received_ = Clock::now(), submitted_{}, first_step_{}, first_token_{}, last_prefill_{}, last_step_{};
};

// What a step did for one choice (docs/ledger.md). `part` has its record.
Json ledger_entry(const StepPart& part, const ServedModel& model);

}  // namespace couplet::server
