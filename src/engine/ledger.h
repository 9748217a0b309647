#pragma once
// What each step cost: fills the StepRecord that everybody reads. Reuses its memory: a step allocates nothing once the
// records have grown to the batch.

#include <chrono>
#include <span>

#include "couplet/stats.h"
#include "engine/scheduler.h"
#include "model/batch.h"

namespace couplet::engine {

class Ledger {
 public:
  using Clock = std::chrono::steady_clock;

  void begin_step();
  void begin_forward(std::span<const Planned> plan);
  void end_forward();
  // Notes what a planned sequence's rows led to.
  void note_choice(std::size_t planned, const TokenChoice& choice);
  void end_step(const model::Counters& counters, int num_logit_rows);

  const StepRecord& record() const { return record_; }

 private:
  StepRecord record_;
  Clock::time_point step_began_;
  Clock::time_point forward_began_;
  std::uint64_t num_steps_ = 0;
};

}  // namespace couplet::engine
