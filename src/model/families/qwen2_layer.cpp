#include "model/families/family.h"

// Qwen 2 and 2.5: Llama with biases on queries, keys and values.

namespace couplet::model {
namespace {

void configure(const ConfigReader& reader, ModelConfig& config) {
  config.ropes = {read_rope(reader, 10000.0, config.rope_dims)};
}

void load_layer(WeightLoader& loader, int layer, LayerWeights& w) {
  const ModelConfig& c = loader.config();
  loader.layer_vector(layer, "attn_norm", c.hidden_size, w.attention_norm);
  loader.layer_attention(layer, w);
  loader.layer_bias(layer, "attn_q", c.q_size(), w.q_bias);
  loader.layer_bias(layer, "attn_k", c.kv_size(), w.k_bias);
  loader.layer_bias(layer, "attn_v", c.kv_size(), w.v_bias);
  loader.layer_vector(layer, "ffn_norm", c.hidden_size, w.ffn_norm);
  loader.layer_feed_forward(layer, w);
}

void run_layer(Ops& ops, const LayerWeights& w, int layer) {
  Activations& a = ops.activations();
  ops.norm(a.x, w.attention_norm, a.y);
  ops.matmul(a.y, {{&w.q, &a.q}, {&w.k, &a.k}, {&w.v, &a.v}});
  ops.add_bias(a.q, w.q_bias);
  ops.add_bias(a.k, w.k_bias);
  ops.add_bias(a.v, w.v_bias);
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

const Family kQwen2 = {"qwen2", configure, load_layer, run_layer};

}  // namespace couplet::model
