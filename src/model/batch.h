#pragma once
// The rows of one step: chunks of prompts and single decode rows of several sequences, side by side. Exactness makes
// the mix free: a row's logits don't depend on its neighbours.

#include <cstdint>
#include <span>

#include "cache/page_table.h"
#include "couplet/tokenizer.h"

namespace couplet::model {

// One sequence's rows, at consecutive positions.
struct SequenceRows {
  int first_row = 0;
  int num_rows = 0;
  int first_position = 0;
  const cache::PageTable* pages = nullptr;  // reserved up to first_position + num_rows
  int num_logit_rows = 0;                   // of the last rows: those that need logits
};

struct Batch {
  std::span<const TokenId> tokens;            // [rows]
  std::span<const SequenceRows> sequences;    // rows in order, without gaps
  int num_rows() const { return static_cast<int>(tokens.size()); }
};

enum class RowFault : std::uint8_t { none, not_finite, cache_range };

// Work done, counted where it is done.
struct Counters {
  std::uint64_t matmul_operations = 0;
  std::uint64_t attention_operations = 0;
  std::uint64_t float_operations = 0;  // of the two above
  std::uint64_t weights_bytes = 0;
  std::uint64_t cache_read_bytes = 0;
  std::uint64_t cache_write_bytes = 0;
};

// Of it, what one sequence alone caused: its attention.
struct SequenceCounters {
  std::uint64_t attention_operations = 0;
  std::uint64_t float_operations = 0;
  std::uint64_t cache_read_bytes = 0;
  std::uint64_t cache_write_bytes = 0;
};

}  // namespace couplet::model
