#include "model/families/family.h"

// Granite: Llama with four multipliers, on embeddings, attention scores, what a layer adds, and logits.

namespace couplet::model {
namespace {

void configure(const ConfigReader& reader, ModelConfig& config) {
  config.ropes = {read_rope(reader, 10000.0, config.rope_dims)};
  config.embedding_scale = static_cast<float>(reader.optional_float("embedding_scale", 1.0, 1e-6, 1e6));
  config.residual_scale = static_cast<float>(reader.optional_float("residual_scale", 1.0, 1e-6, 1e6));
  config.logit_scale = 1.0F / static_cast<float>(reader.optional_float("logit_scale", 1.0, 1e-6, 1e6));
}

void load_layer(WeightLoader& loader, int layer, LayerWeights& w) {
  const ModelConfig& c = loader.config();
  loader.layer_vector(layer, "attn_norm", c.hidden_size, w.attention_norm);
  loader.layer_attention(layer, w);
  loader.layer_vector(layer, "ffn_norm", c.hidden_size, w.ffn_norm);
  loader.layer_feed_forward(layer, w);
}

void run_layer(Ops& ops, const LayerWeights& w, int layer) {
  Activations& a = ops.activations();
  ops.norm(a.x, w.attention_norm, a.y);
  ops.matmul(a.y, {{&w.q, &a.q}, {&w.k, &a.k}, {&w.v, &a.v}});
  ops.rope(layer, a.q);
  ops.rope(layer, a.k);
  ops.attend(layer);
  ops.matmul(a.attended, {{&w.o, &a.y}});
  ops.add_scaled(a.x, a.y);

  ops.norm(a.x, w.ffn_norm, a.y);
  ops.matmul(a.y, {{&w.gate, &a.gate}, {&w.up, &a.up}});
  ops.gate_mul(Gating::silu, a.gate, a.up);
  ops.matmul(a.gate, {{&w.down, &a.y}});
  ops.add_scaled(a.x, a.y);
}

}  // namespace

const Family kGranite = {"granite", configure, load_layer, run_layer};

}  // namespace couplet::model
