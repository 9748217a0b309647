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

  float* row(int r) const { return data + static_cast<std::size_t>(r) * static_cast<std::size_t>(stride); }
};

struct Activations {
  Rows x;         // the residual stream, hidden_size
  Rows y;         // what a layer adds to it, hidden_size
  Rows q;         // num_heads * head_dim
  Rows k, v;      // num_kv_heads * head_dim
  Rows attended;  // num_heads * head_dim
  Rows gate, up;  // intermediate_size
  // Where the model has experts: their logits [rows, num_experts], then a slot for each expert of each row, slots of
  // one expert side by side.
  Rows router;
  Rows expert_x, expert_y;      // hidden_size
  Rows expert_gate, expert_up;  // expert_size
  kernels::QuantizedRows quantized;  // of the widest input
};

}  // namespace couplet::model
