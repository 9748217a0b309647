#include <cmath>

#include "model/families/family.h"

// Gemma: Llama with GELU and scaled embeddings. (The file stores its norm weights as 1 + w.)

namespace couplet::model {
namespace {

void configure(const ConfigReader& reader, ModelConfig& config) {
  config.ropes = {read_rope(reader, 10000.0, config.rope_dims)};
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden_size));
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
  ops.add(a.x, a.y);

  ops.norm(a.x, w.ffn_norm, a.y);
  ops.matmul(a.y, {{&w.gate, &a.gate}, {&w.up, &a.up}});
  ops.gate_mul(Gating::gelu, a.gate, a.up);
  ops.matmul(a.gate, {{&w.down, &a.y}});
  ops.add(a.x, a.y);
}

}  // namespace

const Family kGemma = {"gemma", configure, load_layer, run_layer};

}  // namespace couplet::model
