#include "model/families/family.h"

// gpt-oss: biases everywhere, a sink in each head's softmax, a window in every second layer, experts with a clamped SiLU.

namespace couplet::model {
namespace {

void configure(const ConfigReader& reader, ModelConfig& config) {
  config.ropes = {read_rope(reader, 150000.0, config.rope_dims)};
  config.ropes[0].whole_range = false;
  read_experts(reader, "expert_feed_forward_length", config);
  const int window = reader.optional("attention.sliding_window", 128, 1, 1 << 24);
  for (std::size_t layer = 0; layer < config.layers.size(); layer += 2) config.layers[layer].window = window;
}

void load_layer(WeightLoader& loader, int layer, LayerWeights& w) {
  const ModelConfig& c = loader.config();
  loader.layer_vector(layer, "attn_norm", c.hidden_size, w.attention_norm);
  loader.layer_attention(layer, w);
  loader.layer_bias(layer, "attn_q", c.q_size(), w.q_bias);
  loader.layer_bias(layer, "attn_k", c.kv_size(), w.k_bias);
  loader.layer_bias(layer, "attn_v", c.kv_size(), w.v_bias);
  loader.layer_bias(layer, "attn_output", c.hidden_size, w.o_bias);
  loader.layer_vector(layer, "attn_sinks", c.num_heads, w.sinks);
  loader.layer_vector(layer, "post_attention_norm", c.hidden_size, w.ffn_norm);
  loader.layer_experts(layer, w);
  loader.layer_expert_biases(layer, w);
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
  ops.attend(layer, w.sinks);
  ops.matmul(a.attended, {{&w.o, &a.y}});
  ops.add_bias(a.y, w.o_bias);
  ops.add(a.x, a.y);

  ops.norm(a.x, w.ffn_norm, a.y);
  ops.experts(a.y, w, Gating::clamped_silu, a.y);
  ops.add(a.x, a.y);
}

}  // namespace

const Family kGptOss = {"gpt-oss", configure, load_layer, run_layer};

}  // namespace couplet::model
