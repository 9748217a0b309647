#include "engine/ledger.h"

namespace couplet::engine {
namespace {

double ms_since(Ledger::Clock::time_point began) {
  return std::chrono::duration<double, std::milli>(Ledger::Clock::now() - began).count();
}

}  // namespace

void Ledger::begin_step() {
  step_began_ = Clock::now();
  record_.index = num_steps_;
  record_.num_prefill_rows = record_.num_decode_rows = record_.num_logit_rows = 0;
  record_.matmul_operations = record_.attention_operations = 0;
  record_.weights_bytes = record_.cache_read_bytes = record_.cache_write_bytes = 0;
  record_.forward_ms = record_.step_ms = 0;
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
    if (!sequence.cached_noted) step.num_cached = sequence.num_cached;
    sequence.cached_noted = true;
    (planned.stage == Stage::prefill ? record_.num_prefill_rows : record_.num_decode_rows) += planned.num_rows;
    record_.sequences.push_back(std::move(step));
  }
}

void Ledger::note_choice(std::size_t planned, const TokenChoice& choice) { record_.sequences[planned].choice = choice; }

void Ledger::note_work(const model::Counters& counters, int num_logit_rows) {
  record_.num_logit_rows = num_logit_rows;
  record_.matmul_operations = counters.matmul_operations;
  record_.attention_operations = counters.attention_operations;
  record_.weights_bytes = counters.weights_bytes;
  record_.cache_read_bytes = counters.cache_read_bytes;
  record_.cache_write_bytes = counters.cache_write_bytes;
}

void Ledger::end_step() {
  record_.step_ms = ms_since(step_began_);
  ++num_steps_;
}

}  // namespace couplet::engine
