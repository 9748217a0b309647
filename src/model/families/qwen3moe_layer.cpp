#include "model/families/family.h"

// Qwen 3 with experts in place of the feed-forward.

namespace couplet::model {
namespace {

void configure(const ConfigReader& reader, ModelConfig& config) {
  config.ropes = {read_rope(reader, 1000000.0, config.rope_dims)};
  read_experts(reader, "expert_feed_forward_length", config);
  config.normalize_experts = reader.optional_bool("expert_weights_norm", true);
}

void load_layer(WeightLoader& loader, int layer, LayerWeights& w) {
  const ModelConfig& c = loader.config();
  loader.layer_vector(layer, "attn_norm", c.hidden_size, w.attention_norm);
  loader.layer_attention(layer, w);
  loader.layer_vector(layer, "attn_q_norm", c.head_dim, w.q_norm);
  loader.layer_vector(layer, "attn_k_norm", c.head_dim, w.k_norm);
  loader.layer_vector(layer, "ffn_norm", c.hidden_size, w.ffn_norm);
  loader.layer_experts(layer, w);
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
  ops.add(a.x, a.y);

  ops.norm(a.x, w.ffn_norm, a.y);
  ops.experts(a.y, w, Gating::silu, a.y);
  ops.add(a.x, a.y);
}

}  // namespace

const Family kQwen3Moe = {"qwen3moe", configure, load_layer, run_layer};

}  // namespace couplet::model
