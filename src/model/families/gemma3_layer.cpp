#include <cmath>

#include "model/families/family.h"

// Gemma 3: norms on both sides of attention and feed-forward, norms on each query and key head, GELU, and a sliding
// window in five layers of six, which turn by a rope base of their own. (The file stores its norm weights as 1 + w.)

namespace couplet::model {
namespace {

enum RopeTable { kGlobal, kLocal };

void configure(const ConfigReader& reader, ModelConfig& config) {
  RopeConfig local;
  local.theta = reader.optional_float("rope.freq_base_swa",
                                      reader.optional_float("rope.local.freq_base", 10000.0, 1.0, 1e12), 1.0, 1e12);
  config.ropes = {read_rope(reader, 1000000.0, config.rope_dims), local};
  // The 27B model divides its queries by another size; its files don't say so.
  if (config.num_layers == 62)
    config.attention_scale = 1.0F / std::sqrt(static_cast<float>(config.hidden_size) / static_cast<float>(config.num_heads));
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden_size));
  const int window = reader.optional("attention.sliding_window", 0, 0, 1 << 24);
  const int pattern = reader.optional("attention.sliding_window_pattern", 6, 1, 1 << 16);
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const bool global = window == 0 || (layer + 1) % pattern == 0;
    config.layers[static_cast<std::size_t>(layer)] = {global ? 0 : window, global ? kGlobal : kLocal};
  }
}

void load_layer(WeightLoader& loader, int layer, LayerWeights& w) {
  const ModelConfig& c = loader.config();
  loader.layer_vector(layer, "attn_norm", c.hidden_size, w.attention_norm);
  loader.layer_matrix(layer, "attn_q", c.q_size(), c.hidden_size, w.q);
  loader.layer_matrix(layer, "attn_k", c.kv_size(), c.hidden_size, w.k);
  loader.layer_matrix(layer, "attn_v", c.kv_size(), c.hidden_size, w.v);
  loader.layer_vector(layer, "attn_q_norm", c.head_dim, w.q_norm);
  loader.layer_vector(layer, "attn_k_norm", c.head_dim, w.k_norm);
  loader.layer_matrix(layer, "attn_output", c.hidden_size, c.q_size(), w.o);
  loader.layer_vector(layer, "post_attention_norm", c.hidden_size, w.post_attention_norm);
  loader.layer_vector(layer, "ffn_norm", c.hidden_size, w.ffn_norm);
  loader.layer_matrix(layer, "ffn_gate", c.intermediate_size, c.hidden_size, w.gate);
  loader.layer_matrix(layer, "ffn_up", c.intermediate_size, c.hidden_size, w.up);
  loader.layer_matrix(layer, "ffn_down", c.hidden_size, c.intermediate_size, w.down);
  loader.layer_vector(layer, "post_ffw_norm", c.hidden_size, w.post_ffn_norm);
}

void run_layer(Ops& ops, const LayerWeights& w, int layer) {
  Activations& a = ops.activations();
  ops.norm(a.x, w.attention_norm, a.y);
  ops.matmul(a.y, {{&w.q, &a.q}, {&w.k, &a.k}, {&w.v, &a.v}});
  ops.norm_heads(a.q, w.q_norm);
  ops.norm_heads(a.k, w.k_norm);
  ops.rope(layer, a.q);
  ops.rope(layer, a.k);
  ops.attend(layer);
  ops.matmul(a.attended, {{&w.o, &a.y}});
  ops.norm(a.y, w.post_attention_norm, a.y);
  ops.add(a.x, a.y);

  ops.norm(a.x, w.ffn_norm, a.y);
  ops.matmul(a.y, {{&w.gate, &a.gate}, {&w.up, &a.up}});
  ops.gate_mul(Gating::gelu, a.gate, a.up);
  ops.matmul(a.gate, {{&w.down, &a.y}});
  ops.norm(a.y, w.post_ffn_norm, a.y);
  ops.add(a.x, a.y);
}

}  // namespace

const Family kGemma3 = {"gemma3", configure, load_layer, run_layer};

}  // namespace couplet::model
