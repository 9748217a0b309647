#pragma once
// Rows + cache -> logits: the one function that prefill and decode both are. Has never seen a string.

#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "cache/page_pool.h"
#include "model/batch.h"
#include "model/config.h"
#include "model/ops.h"
#include "model/weights.h"

namespace couplet::model {

struct ForwardOptions {
  int max_rows = 0;       // of one batch
  int max_sequences = 0;  // of one batch
  int num_planes = 1;     // 1: precision fast, 2: fine
};

class Forward {
 public:
  // Logit rows that one head() call takes: the logits of a long prompt would not fit in memory at once.
  static constexpr int kHeadRows = 32;

  Forward(const ModelConfig& config, const Weights& weights, const kernels::KernelTable& kernels, ThreadPool& threads,
          const cache::PagePool& pool, const ForwardOptions& options);

  // Takes the batch through all layers and writes its keys and values into the cache.
  void run(const Batch& batch);
  // How many rows of the last batch need logits, sequence by sequence.
  int num_logit_rows() const { return static_cast<int>(logit_rows_.size()); }
  // Logits of logit rows [first, first + num), num <= kHeadRows: row i of the result [num, vocab_size]. Valid until the
  // next call.
  const Rows& head(int first, int num);
  // The first fault of any row of the last batch's sequence number `sequence`.
  RowFault fault(int sequence) const;
  const Counters& counters() const { return ops_.counters(); }
  std::span<const SequenceCounters> sequence_counters() const { return ops_.sequence_counters(); }  // in the batch's order

 private:
  const ModelConfig* config_;
  const Weights* weights_;
  Ops ops_;
  MappedMemory logits_memory_;
  Rows logits_;
  Batch batch_;
  std::vector<int> logit_rows_;
  int rows_embedded_ = 0;  // since the embedding's pages were dropped
};

// The cache that this model needs, for one page.
cache::CacheShape cache_shape(const ModelConfig& config, cache::PageFormat format);

}  // namespace couplet::model
