#include <algorithm>

#include "base/check.h"
#include "model/ops.h"

// Latent attention (MLA) in its absorbed form, in both stages: a head's score is its query times the key that it would make
// of a position's compressed vector, key_up * c, which is (key_up' * query) * c. So queries take the matrix in, all heads
// attend to the one compressed vector, and what they get is a sum of such vectors, of which value_up makes the head's
// value (docs/adr/0011-latent-attention-absorbed.md).

namespace couplet::model {

void Ops::take_in_keys(const LayerWeights& weights) {
  const Activations& a = activations_;
  const LatentConfig& latent = config_->latent;
  multiply_heads(a.head_query, weights.key_up, a.q);
  const int query_dim = latent.key_dim + config_->rope_dims;
  threads_->parallel_for(num_rows_, [&](int row, int) {
    for (int head = 0; head < config_->num_heads; ++head)
      std::copy_n(a.head_query.row(row) + head * query_dim + latent.key_dim, config_->rope_dims,
                  a.q.row(row) + head * config_->head_dim + latent.rank);
    std::copy_n(a.k.row(row), latent.rank, a.v.row(row));
    std::fill_n(a.v.row(row) + latent.rank, config_->rope_dims, 0.0F);
  });
}

void Ops::take_out_values(const LayerWeights& weights) {
  multiply_heads(activations_.attended, weights.value_up, activations_.head_value);
}

// Each head of `in`, as far as its matrix reads, times that matrix into the same head of `out`.
void Ops::multiply_heads(const Rows& in, std::span<const PackedMatrix> weights, const Rows& out) {
  const int num_heads = config_->num_heads, in_dim = in.cols / num_heads, out_dim = out.cols / num_heads;
  const int in_cols = weights[0].cols, out_cols = weights[0].rows;
  COUPLET_CHECK(in_cols <= in_dim && out_cols <= out_dim);
  const auto compact = [](const Rows& rows, int cols) { return Rows{rows.data, cols, kernels::padded16(cols)}; };
  const Rows from = compact(activations_.head_in, in_cols), to = compact(activations_.head_out, out_cols);
  threads_->parallel_for(num_rows_, [&](int row, int) {
    for (int head = 0; head < num_heads; ++head) {
      std::copy_n(in.row(row) + head * in_dim, in_cols, from.row(head * num_rows_ + row));
      row_of_slot_[static_cast<std::size_t>(head * num_rows_ + row)] = row;
    }
  });
  pieces_.clear();
  for (int head = 0; head < num_heads; ++head)
    pieces_.push_back({&weights[static_cast<std::size_t>(head)], &to, head * num_rows_, num_rows_});
  multiply(from, rows_of_slots(num_heads * num_rows_), pieces_, num_planes_);
  threads_->parallel_for(num_rows_, [&](int row, int) {
    for (int head = 0; head < num_heads; ++head)
      std::copy_n(to.row(head * num_rows_ + row), out_cols, out.row(row) + head * out_dim);
  });
}

}  // namespace couplet::model
