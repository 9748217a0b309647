#include "model/families/family.h"

// Phi 3 and 4: Llama with queries, keys and values in one tensor, gate and up in another; part of a head may turn, and long
// contexts have rope factors of their own.

namespace couplet::model {
namespace {

void configure(const ConfigReader& reader, ModelConfig& config) {
  config.ropes = {read_rope(reader, 10000.0, config.rope_dims)};
  const int window = reader.optional("attention.sliding_window", 0, 0, 1 << 24);
  for (LayerConfig& layer : config.layers) layer.window = window;
}

void load_layer(WeightLoader& loader, int layer, LayerWeights& w) {
  const ModelConfig& c = loader.config();
  loader.layer_vector(layer, "attn_norm", c.hidden_size, w.attention_norm);
  loader.layer_matrices(layer, "attn_qkv", c.hidden_size, {{&w.q, c.q_size()}, {&w.k, c.kv_size()}, {&w.v, c.kv_size()}});
  loader.layer_matrix(layer, "attn_output", c.hidden_size, c.q_size(), w.o);
  loader.layer_vector(layer, "ffn_norm", c.hidden_size, w.ffn_norm);
  loader.layer_matrices(layer, "ffn_up", c.hidden_size, {{&w.gate, c.intermediate_size}, {&w.up, c.intermediate_size}});
  loader.layer_matrix(layer, "ffn_down", c.hidden_size, c.intermediate_size, w.down);
}

void run_layer(Ops& ops, const LayerWeights& w, int layer) {
  Activations& a = ops.activations();
  ops.norm(a.x, w.attention_norm, a.y);
  ops.matmul(a.y, {{&w.q, &a.q}, {&w.k, &a.k}, {&w.v, &a.v}});
  ops.rope(layer, a.q);
  ops.rope(layer, a.k);
  ops.attend(layer);
  ops.matmul(a.attended, {{&w.o, &a.y}});
  ops.add(a.x, a.y);

  ops.norm(a.x, w.ffn_norm, a.y);
  ops.matmul(a.y, {{&w.gate, &a.gate}, {&w.up, &a.up}});
  ops.gate_mul(Gating::silu, a.gate, a.up);
  ops.matmul(a.gate, {{&w.down, &a.y}});
  ops.add(a.x, a.y);
}

}  // namespace

const Family kPhi3 = {"phi3", configure, load_layer, run_layer};

}  // namespace couplet::model
