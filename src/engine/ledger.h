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
  // Notes what a planned sequence's rows led to.
  void note_choice(std::size_t planned, const TokenChoice& choice);
  void note_work(const model::Counters& counters, int num_logit_rows);
  void end_step();

  const StepRecord& record() const { return record_; }

 private:
  StepRecord record_;
  Clock::time_point step_began_;
  std::uint64_t num_steps_ = 0;
};

}  // namespace couplet::engine
