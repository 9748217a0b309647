#include "engine/ledger.h"

#include <utility>

namespace couplet::engine {
namespace {

double ms_since(Ledger::Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Ledger::Clock::now() - began).count();
}

// Cuts a total in proportion to rows, sequence after sequence, so that the parts add up to it.
class Shares {
 public:
  Shares(std::uint64_t total, int num_rows) : total_(total), num_rows_(static_cast<std::uint64_t>(num_rows)) {}

  std::uint64_t next(int num_rows) {
    const std::uint64_t before = up_to(done_);
    done_ += static_cast<std::uint64_t>(num_rows);
    return up_to(done_) - before;
  }

 private:
  // The whole rows' part apart: total * rows may not fit 64 bits.
  std::uint64_t up_to(std::uint64_t rows) const {
    return num_rows_ == 0 ? 0 : total_ / num_rows_ * rows + total_ % num_rows_ * rows / num_rows_;
  }

  std::uint64_t total_, num_rows_;
  std::uint64_t done_ = 0;
};

}  // namespace

void Ledger::begin_step() {
  step_began_ = Clock::now();
  record_.index = num_steps_;
  record_.num_prefill_rows = record_.num_decode_rows = record_.num_logit_rows = 0;
  record_.matmul_operations = record_.attention_operations = record_.float_operations = 0;
  record_.weights_bytes = record_.cache_read_bytes = record_.cache_write_bytes = 0;
  record_.forward_ms = record_.step_ms = others_ms_ = 0;
  record_.sequences.clear();
}

Ledger::Timing::~Timing() { *total_ms_ += ms_since(began_); }

void Ledger::note_plan(std::span<const Planned> plan) {
  for (const Planned& planned : plan) {
    Sequence& sequence = *planned.sequence;
    SequenceStep step;
    step.id = sequence.id;
    step.stage = planned.stage;
    step.num_rows = planned.num_rows;
    step.first_position = sequence.num_computed;
    step.num_cached = sequence.num_cached - std::exchange(sequence.num_cached_noted, sequence.num_cached);
    (planned.stage == Stage::prefill ? record_.num_prefill_rows : record_.num_decode_rows) += planned.num_rows;
    record_.sequences.push_back(std::move(step));
  }
}

void Ledger::note_choice(std::size_t planned, const TokenChoice& choice) { record_.sequences[planned].choice = choice; }

void Ledger::note_layers(const model::Counters& counters, std::span<const model::SequenceCounters> sequences) {
  layers_ = counters;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    SequenceStep& step = record_.sequences[i];
    step.attention_operations = sequences[i].attention_operations;
    step.float_operations = sequences[i].float_operations;
    step.cache_read_bytes = sequences[i].cache_read_bytes;
    step.cache_write_bytes = sequences[i].cache_write_bytes;
  }
}

// Layers take all rows, the head takes the logit rows.
void Ledger::note_work(const model::Counters& counters, std::span<const model::SequenceRows> sequences) {
  record_.num_logit_rows = 0;
  for (const model::SequenceRows& rows : sequences) record_.num_logit_rows += rows.num_logit_rows;
  std::uint64_t float_attention = 0;
  for (const SequenceStep& step : record_.sequences) float_attention += step.float_operations;
  const int num_rows = record_.num_prefill_rows + record_.num_decode_rows, num_logit_rows = record_.num_logit_rows;
  Shares layers(layers_.matmul_operations, num_rows);
  Shares head(counters.matmul_operations - layers_.matmul_operations, num_logit_rows);
  Shares layers_float(layers_.float_operations - float_attention, num_rows);
  Shares head_float(counters.float_operations - layers_.float_operations, num_logit_rows);
  Shares layers_bytes(layers_.weights_bytes, num_rows);
  Shares head_bytes(counters.weights_bytes - layers_.weights_bytes, num_logit_rows);
  for (std::size_t i = 0; i < record_.sequences.size(); ++i) {
    SequenceStep& step = record_.sequences[i];
    step.num_logit_rows = sequences[i].num_logit_rows;
    step.matmul_operations = layers.next(step.num_rows) + head.next(step.num_logit_rows);
    step.float_operations += layers_float.next(step.num_rows) + head_float.next(step.num_logit_rows);
    step.weights_bytes = layers_bytes.next(step.num_rows) + head_bytes.next(step.num_logit_rows);
  }
  record_.matmul_operations = counters.matmul_operations;
  record_.attention_operations = counters.attention_operations;
  record_.float_operations = counters.float_operations;
  record_.weights_bytes = counters.weights_bytes;
  record_.cache_read_bytes = counters.cache_read_bytes;
  record_.cache_write_bytes = counters.cache_write_bytes;
}

void Ledger::note_state(const Scheduler& scheduler, const cache::PagePool& pool, const cache::PrefixTree& tree) {
  record_.num_running = scheduler.num_running();
  record_.num_waiting = scheduler.num_waiting();
  record_.num_preempted = scheduler.num_preemptions() - std::exchange(num_preemptions_, scheduler.num_preemptions());
  record_.pages_total = pool.num_pages();
  record_.pages_used = pool.used_pages();
  record_.pages_in_tree = tree.num_nodes();
  record_.prefill_budget = scheduler.row_budget();
  record_.prefix_queried_tokens = scheduler.queried_tokens();
  record_.prefix_hit_tokens = scheduler.hit_tokens();
}

void Ledger::end_step() {
  record_.step_ms = ms_since(step_began_) - others_ms_;
  ++num_steps_;
}

}  // namespace couplet::engine
