#pragma once
// What a step did, measured: the one record that explain, bench, metrics, traces, the page and the scheduler read. A step's
// time is that of all its sequences; what they did in it is each one's own, and adds up to the step's.

#include <cstdint>
#include <span>
#include <vector>

#include "couplet/request.h"

namespace couplet {

enum class Stage : std::uint8_t { prefill, decode };
const char* name(Stage stage);

struct Alternative {
  TokenId id = -1;
  float log_probability = 0;  // natural log, of the model's own distribution
};

// The token that a row's distribution led to.
struct TokenChoice {
  TokenId id = -1;                   // -1: this row chose nothing (a chunk that does not end its prompt)
  bool forced = false;               // by Request::forced or on_choice; neither forced nor drawn: the best one
  bool drawn = false;
  double draw = 0;                   // in [0, 1): its place in the kept candidates' cumulative sum, best first
  bool measured = false;             // the probabilities below were computed
  float log_probability = 0;         // before shaping: the model's own
  float shaped_log_probability = 0;  // after penalties, temperature and truncation
  float entropy = 0;                 // of the model's own distribution, nats
  std::uint32_t num_kept = 0;        // candidates left after truncation
  std::uint32_t text_tokens = 0;     // how many tokens made up the text that this one made certain; 0: none did yet
  std::vector<Alternative> alternatives = {};  // best first, at most Request::num_alternatives
};

// One sequence's part of a step.
struct SequenceStep {
  RequestId id = 0;
  Stage stage = Stage::prefill;
  int num_rows = 0;        // tokens run,
  int num_logit_rows = 0;  //   of them those that became a distribution
  int first_position = 0;  // of the first row
  int num_cached = 0;      // prompt positions taken from the prefix cache since its last step: add them up
  std::uint64_t matmul_operations = 0;  // of its rows
  std::uint64_t attention_operations = 0;
  std::uint64_t float_operations = 0;  // of the two above; the others are integer operations
  std::uint64_t weights_bytes = 0;     // read for all rows of the step together: its rows' share
  std::uint64_t cache_read_bytes = 0;
  std::uint64_t cache_write_bytes = 0;
  TokenChoice choice;
};

struct StepRecord {
  std::uint64_t index = 0;
  int num_prefill_rows = 0;
  int num_decode_rows = 0;
  int num_logit_rows = 0;
  std::uint64_t matmul_operations = 0;     // two a multiply-add, weights times rows, every plane counted
  std::uint64_t attention_operations = 0;  // two a multiply-add, scores and values
  std::uint64_t float_operations = 0;      // of the two above; the others are integer operations
  std::uint64_t weights_bytes = 0;         // read once a step, however many rows; the head once in 32 logit rows
  std::uint64_t cache_read_bytes = 0;
  std::uint64_t cache_write_bytes = 0;
  int num_running = 0;     // sequences after the step, and below
  int num_waiting = 0;
  int num_preempted = 0;   // in this step
  int pages_total = 0;     // of the cache: all,
  int pages_used = 0;      //   those of sequences or the prefix tree,
  int pages_in_tree = 0;   //   those of the prefix tree
  int prefill_budget = 0;  // prompt rows that the step was allowed
  std::uint64_t prefix_queried_tokens = 0;  // since load: prompt tokens looked up in the prefix tree,
  std::uint64_t prefix_hit_tokens = 0;      //   and found
  double forward_ms = 0;  // the model alone: layers and head
  double step_ms = 0;     // all of step(), but for what on_choice took
  std::vector<SequenceStep> sequences;
};

// What came out of a step for one request. Views into the engine, valid until the next step().
struct Event {
  RequestId id = 0;
  TokenId token = -1;            // the id chosen in this step; -1: none
  std::string_view text;         // what has become certain, valid UTF-8; may be empty
  const TokenChoice* choice = nullptr;
  StopReason stop = StopReason::none;
};

}  // namespace couplet
