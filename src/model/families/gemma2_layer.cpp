#include <cmath>

#include "model/families/family.h"

// Gemma 2: norms on both sides of attention and feed-forward, GELU, soft caps on scores and logits, a window in every
// second layer. (The file stores its norm weights as 1 + w.)

namespace couplet::model {
namespace {

void configure(const ConfigReader& reader, ModelConfig& config) {
  config.ropes = {read_rope(reader, 10000.0, config.rope_dims)};
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden_size));
  // The 27B model divides its queries by another size; its files don't say so.
  if (config.num_layers == 46)
    config.attention_scale = 1.0F / std::sqrt(static_cast<float>(config.hidden_size) / static_cast<float>(config.num_heads));
  config.attention_cap = static_cast<float>(reader.optional_float("attn_logit_softcapping", 50.0, 1e-3, 1e6));
  config.logit_cap = static_cast<float>(reader.optional_float("final_logit_softcapping", 30.0, 1e-3, 1e6));
  const int window = reader.optional("attention.sliding_window", 4096, 1, 1 << 24);
  for (std::size_t layer = 0; layer < config.layers.size(); layer += 2) config.layers[layer].window = window;
}

void load_layer(WeightLoader& loader, int layer, LayerWeights& w) {
  const ModelConfig& c = loader.config();
  loader.layer_vector(layer, "attn_norm", c.hidden_size, w.attention_norm);
  loader.layer_attention(layer, w);
  loader.layer_vector(layer, "post_attention_norm", c.hidden_size, w.post_attention_norm);
  loader.layer_vector(layer, "ffn_norm", c.hidden_size, w.ffn_norm);
  loader.layer_feed_forward(layer, w);
  loader.layer_vector(layer, "post_ffw_norm", c.hidden_size, w.post_ffn_norm);
}

void run_layer(Ops& ops, const LayerWeights& w, int layer) {
  Activations& a = ops.activations();
  ops.norm(a.x, w.attention_norm, a.y);
  ops.matmul(a.y, {{&w.q, &a.q}, {&w.k, &a.k}, {&w.v, &a.v}});
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

const Family kGemma2 = {"gemma2", configure, load_layer, run_layer};

}  // namespace couplet::model
