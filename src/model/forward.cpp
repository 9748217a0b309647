#include "model/forward.h"

#include <algorithm>

#include "base/check.h"
#include "model/families/family.h"

namespace couplet::model {
namespace {

// Each row of the embedding that is read brings 64 KiB of the file along: in the end all of it, had it leave to stay.
constexpr int kRowsKept = 128;

}  // namespace

Forward::Forward(const ModelConfig& config, const Weights& weights, const kernels::KernelTable& kernels,
                 ThreadPool& threads, const cache::PagePool& pool, const ForwardOptions& options)
    : config_(&config),
      weights_(&weights),
      ops_(config, kernels, threads, pool, options.max_rows, options.max_sequences, options.num_planes) {
  logits_.cols = config.vocab_size;
  logits_.stride = kernels::padded16(config.vocab_size);
  const int rows = std::min(kHeadRows, options.max_rows);
  logits_memory_ = MappedMemory(static_cast<std::size_t>(rows) * static_cast<std::size_t>(logits_.stride) * sizeof(float),
                                "logits");
  logits_.data = reinterpret_cast<float*>(logits_memory_.data());
  logit_rows_.reserve(static_cast<std::size_t>(options.max_rows));
}

void Forward::run(const Batch& batch) {
  batch_ = batch;
  logit_rows_.clear();
  int next_row = 0;
  for (const SequenceRows& s : batch.sequences) {
    COUPLET_CHECK(s.first_row == next_row && s.num_rows > 0 && s.num_logit_rows <= s.num_rows);
    COUPLET_CHECK(s.first_position + s.num_rows <= config_->context_length);
    next_row += s.num_rows;
    for (int row = next_row - s.num_logit_rows; row < next_row; ++row) logit_rows_.push_back(row);
  }
  COUPLET_CHECK(next_row == batch.num_rows());

  ops_.begin(batch);
  ops_.embed(*weights_->embedding, ops_.activations().x);
  rows_embedded_ += batch.num_rows();
  if (rows_embedded_ >= kRowsKept) {
    weights_->file->drop(weights_->embedding->bytes);
    rows_embedded_ = 0;
  }
  for (int layer = 0; layer < config_->num_layers; ++layer)
    config_->family->run_layer(ops_, weights_->layers[static_cast<std::size_t>(layer)], layer);
}

const Rows& Forward::head(int first, int num) {
  COUPLET_CHECK(num <= kHeadRows && first + num <= num_logit_rows());
  const std::span<const int> rows(logit_rows_.data() + first, static_cast<std::size_t>(num));
  ops_.head(weights_->output_norm, weights_->head, rows, logits_);
  return logits_;
}

RowFault Forward::fault(int sequence) const {
  const SequenceRows& s = batch_.sequences[static_cast<std::size_t>(sequence)];
  const auto faults = ops_.faults().subspan(static_cast<std::size_t>(s.first_row), static_cast<std::size_t>(s.num_rows));
  const auto first = std::find_if(faults.begin(), faults.end(), [](RowFault f) { return f != RowFault::none; });
  return first == faults.end() ? RowFault::none : *first;
}

cache::CacheShape cache_shape(const ModelConfig& config, cache::PageFormat format) {
  return {config.num_layers, config.num_kv_heads, config.head_dim, format};
}

}  // namespace couplet::model
