#pragma once
// Every buffer of a forward pass, for at most max_rows rows, carved out of one reservation at load: a step allocates
// nothing. Strides are padded to 16 floats, because products write whole panels.

#include "base/memory.h"
#include "kernels/kernels.h"
#include "model/config.h"

namespace couplet::model {

// [rows, cols] floats, row r at data + r * stride.
struct Rows {
  float* data = nullptr;
  int cols = 0;
  int stride = 0;

  // The first `num` columns.
  Rows first(int num) const { return {data, num, stride}; }
  float* row(int r) const { return data + static_cast<std::size_t>(r) * static_cast<std::size_t>(stride); }
};

struct Activations {
  Rows x;         // the residual stream, hidden_size
  Rows y;         // what a layer adds to it, hidden_size
  Rows q;         // num_heads * head_dim
  Rows k, v;      // num_kv_heads * head_dim
  Rows attended;  // num_heads * head_dim
  Rows gate, up;  // intermediate_size, or that of a shared expert
  // Where the model has experts: their logits [rows, num_experts], then a slot for each expert of each row, slots of
  // one expert side by side.
  Rows router;
  Rows expert_x, expert_y;      // hidden_size
  Rows expert_gate, expert_up;  // expert_size
  // Of latent attention: compressed queries; each head's query, before its key's making is taken into it; each head's value.
  Rows latent_query;  // query_rank
  Rows head_query;    // num_heads * (key_dim + rope_dims)
  Rows head_value;    // num_heads * value_dim
  Rows head_in, head_out;  // a slot for each row of each head, slots of one head side by side
  kernels::QuantizedRows quantized;  // of the widest input
};

}  // namespace couplet::model
