#pragma once
// What each step cost: fills the StepRecord that everybody reads. Allocates for what the batch has grown by, and for the
// alternatives that were asked for.

#include <chrono>
#include <span>

#include "couplet/stats.h"
#include "engine/scheduler.h"
#include "model/batch.h"

namespace couplet::engine {

class Ledger {
 public:
  using Clock = std::chrono::steady_clock;

  // Adds its own lifetime to the step's forward_ms.
  class Timing {
   public:
    explicit Timing(double& total_ms) : total_ms_(&total_ms), began_(Clock::now()) {}
    ~Timing();
    Timing(const Timing&) = delete;
    Timing& operator=(const Timing&) = delete;

   private:
    double* total_ms_;
    Clock::time_point began_;
  };

  void begin_step();
  void note_plan(std::span<const Planned> plan);
  Timing time_forward() { return Timing(record_.forward_ms); }
  // What somebody else does within the step: not a part of it.
  Timing time_others() { return Timing(others_ms_); }
  // Notes what a planned sequence's rows led to.
  void note_choice(std::size_t planned, const TokenChoice& choice);
  // The work so far is that of the layers; what comes until note_work() is the head's. Sequences in the plan's order.
  void note_layers(const model::Counters& counters, std::span<const model::SequenceCounters> sequences);
  void note_work(const model::Counters& counters, std::span<const model::SequenceRows> sequences);
  void note_work(const model::Counters& counters, int num_logit_rows);
  // Who runs and waits after the step, and what the cache holds. Called in every step, with work or without.
  void note_state(const Scheduler& scheduler, const cache::PagePool& pool, const cache::PrefixTree& tree);
  void end_step();

  const StepRecord& record() const { return record_; }

 private:
  StepRecord record_;
  model::Counters layers_;
  double others_ms_ = 0;
  Clock::time_point step_began_;
  std::uint64_t num_steps_ = 0;
  int num_preemptions_ = 0;
};

}  // namespace couplet::engine
