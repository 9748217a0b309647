#pragma once
// The steps that a layer is written in. Each checks its shapes once, splits its rows, panels or heads over the threads,
// calls the level's kernels and counts the work. The batch is fixed by begin(); one Ops serves one model, one step at
// a time.

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "base/memory.h"
#include "base/thread_pool.h"
#include "cache/page_pool.h"
#include "kernels/kernels.h"
#include "model/activations.h"
#include "model/batch.h"
#include "model/config.h"
#include "model/rope_table.h"
#include "model/weights.h"

namespace couplet::model {

// One product of several that share their input.
struct Product {
  const PackedMatrix* weights;
  const Rows* out;
};

// What a gated feed-forward does with its gate and the other half.
enum class Gating : std::uint8_t { silu, gelu, clamped_silu };

class Ops {
 public:
  Ops(const ModelConfig& config, const kernels::KernelTable& kernels, ThreadPool& threads, const cache::PagePool& pool,
      int max_rows, int max_sequences, int num_planes);

  void begin(const Batch& batch);
  const ModelConfig& config() const { return *config_; }
  Activations& activations() { return activations_; }
  const Counters& counters() const { return counters_; }
  std::span<const SequenceCounters> sequence_counters() const { return sequence_counters_; }
  std::span<const RowFault> faults() const { return {faults_.data(), static_cast<std::size_t>(num_rows_)}; }

  // y = x * embedding rows of the batch's tokens, scaled.
  void embed(const formats::Tensor& embedding, const Rows& into);
  // out = rms_norm(in) * weight, a row; out may be in.
  void norm(const Rows& in, Vector weight, const Rows& out);
  // The same for each head of q or k, in place.
  void norm_heads(const Rows& heads, Vector weight);
  void matmul(const Rows& in, std::initializer_list<Product> products);
  void rope(int layer, const Rows& heads);
  // Writes k and v into the cache, then attended = softmax(q k) v for every row of the batch. `sinks` [num_heads], where
  // there are any, take part in each softmax as a position without a value.
  void attend(int layer, Vector sinks = nullptr);
  void gate_mul(Gating gating, const Rows& gate, const Rows& up);
  void add(const Rows& x, const Rows& y);
  // Each row += bias.
  void add_bias(const Rows& x, Vector bias);
  // x += config's residual_scale * y, in one rounding.
  void add_scaled(const Rows& x, const Rows& y);
  // Latent attention, on both sides of attend(). Each head's query takes in how its key is made of the compressed vector:
  // q = key_up * head_query, then the part that is turned. The compressed vector in k is the value, too.
  void take_in_keys(const LayerWeights& weights);
  // Each head's value of the compressed vector that it attended to: head_value = value_up * attended.
  void take_out_values(const LayerWeights& weights);
  // out = the weighted sum of what a row's experts make of it; out may be in. Uses the expert buffers.
  void experts(const Rows& in, const LayerWeights& weights, Gating gating, const Rows& out);

  // Final norm and head of some of the batch's rows, two planes in either precision: logits [rows.size(), vocab_size].
  // Uses y. A row that is not finite gets its fault.
  void head(Vector norm, const PackedMatrix& weights, std::span<const int> rows, const Rows& logits);

 private:
  // A product of rows [first_row, first_row + num_rows) of its input, into the same rows of `out`.
  struct Piece {
    const PackedMatrix* weights;
    const Rows* out;
    int first_row, num_rows;
  };
  struct Cut {
    int first_item, panels_an_item;
  };
  struct AttendItem {   // a block of a sequence's rows under one key/value head
    const SequenceRows* sequence;
    int kv_head;
    int first_row;      // within the sequence
    int num_rows;
    int span;           // decode: the one span of this item; prefill: -1, all spans in order
    int partial;        // decode: where its result goes
  };
  struct PartialRange {  // decode: the spans of one sequence and head, merged when all are there
    const SequenceRows* sequence;
    int kv_head;
    int first_partial;
    int num_partials;
  };

  // The first fault of a row is its cause; what follows is its consequence. From any thread.
  void note_fault(int row, RowFault fault);
  template <class Body>
  void for_rows(int num_rows, Body&& body);
  template <class Body>
  void for_rows_by_thread(int num_rows, Body&& body);
  // `rows`: of the batch, those that `in`'s rows stand for.
  void quantize(const Rows& in, std::span<const int> rows, int num_planes);
  void multiply(const Rows& in, std::span<const int> rows, std::span<const Piece> pieces, int num_planes);
  int cut_into_items(std::span<const Piece> pieces, int num_planes);
  void multiply_experts(const Rows& in, const LayerWeights& weights, std::span<PackedMatrix ExpertWeights::*const> members,
                        std::span<const Rows* const> outs);
  void multiply_heads(const Rows& in, std::span<const PackedMatrix> weights, const Rows& out);
  void choose_experts(Vector bias);
  void score_experts(const float* logits, Vector bias, double* scores) const;
  void leave_out_groups(double* scores) const;
  void group_by_expert();
  void add_expert_biases(const LayerWeights& weights, Vector ExpertWeights::*member, const Rows& rows);
  int num_slots() const { return num_rows_ * config_->num_used_experts; }
  std::span<const int> rows_of_slots(int num) const { return {row_of_slot_.data(), static_cast<std::size_t>(num)}; }
  using GateKernel = void (*)(float* gate, const float* up, std::size_t count);
  GateKernel gate_kernel(Gating gating) const;
  void store_rows(int layer);
  void store_sequence(int layer, const SequenceRows& sequence, int kv_head);
  // Of keys and values [num_rows, head_dim].
  bool all_finite(int first_row, std::size_t first_col, int num_rows) const;
  void count_attention(int layer, const SequenceRows& sequence, SequenceCounters& own);
  void plan_attention(int layer);
  void attend_block(int layer, const AttendItem& item, Vector sinks, int thread);
  void attend_partial(int layer, const AttendItem& item, int thread);
  void merge_partials(const PartialRange& range, Vector sinks, int thread);
  kernels::AttentionSpan span_of(int layer, const AttendItem& item, int span) const;
  void fill_pages(int layer, const SequenceRows& sequence, int kv_head, int span, const std::byte* pages[]) const;
  static kernels::AttentionState state(float* base, int queries);
  // The last span of `group` queries: their heads' sinks. `memory` holds the state.
  void merge_sinks(Vector sinks, const kernels::AttentionState& total, int group, float* memory) const;
  // Of one position's key and value of one layer and head.
  std::uint64_t position_bytes() const { return pool_->shape().head_bytes() / kernels::kPagePositions; }
  int window(int layer) const { return config_->layers[static_cast<std::size_t>(layer)].window; }
  std::byte* scratch(int thread) const { return scratch_.data() + static_cast<std::size_t>(thread) * scratch_bytes_; }

  const ModelConfig* config_;
  const kernels::KernelTable* kernels_;
  const kernels::AttentionKernels* attention_;  // of the cache's format
  ThreadPool* threads_;
  const cache::PagePool* pool_;
  int max_rows_;
  int num_planes_;
  int block_rows_;       // rows of one prefill attention item
  int head_stride_;      // padded head_dim
  std::size_t state_floats_;  // of block_rows_ * group queries

  MappedMemory memory_;
  Activations activations_;
  std::uint8_t* poisoned_ = nullptr;    // [max_rows]
  float* block_states_ = nullptr;       // [threads][2] running and span state of a block
  std::byte* embedding_rows_ = nullptr;  // [threads], of a row as its type has it, where rows are made
  MappedMemory scratch_;
  std::size_t scratch_bytes_;
  Array<float> partials_;               // decode: [partials][group * (head_stride + 2)]
  std::size_t partial_floats_;
  std::vector<AttendItem> items_;
  std::vector<PartialRange> ranges_;
  std::vector<RowFault> faults_;
  std::vector<int> all_rows_;           // 0, 1, 2, ...
  std::vector<Piece> pieces_;
  std::vector<Cut> cuts_;               // of the pieces of one multiply
  // Experts of the running layer.
  std::vector<int> chosen_;             // [rows, num_used_experts] by rank
  std::vector<float> chosen_weights_;   // beside it
  std::vector<int> slot_of_;            // beside it: where its expert's input and output stand
  std::vector<int> row_of_slot_;        // of experts; in latent attention, of heads
  std::vector<int> first_slot_;         // [num_experts + 1]
  std::vector<RopeTable> ropes_;
  Batch batch_;
  int num_rows_ = 0;
  Counters counters_;
  std::vector<SequenceCounters> sequence_counters_;  // of the batch's sequences
};

}  // namespace couplet::model
