#include "model/families/family.h"

// OLMo 2 and 3: no norms before attention and feed-forward but after them, and on the whole width of queries and keys.
// OLMo 3 sees a window in three layers of four, which keep the plain rope.

namespace couplet::model {
namespace {

void configure(const ConfigReader& reader, ModelConfig& config) {
  enum RopeTable { kPlain, kScaled };
  const RopeConfig rope = read_rope(reader, 500000.0, config.rope_dims);
  RopeConfig plain;
  plain.theta = rope.theta;
  config.ropes = {plain, rope};
  const int window = reader.optional("attention.sliding_window", 0, 0, 1 << 24);
  for (std::size_t layer = 0; layer < config.layers.size(); ++layer) {
    const bool global = window == 0 || layer % 4 == 3;
    config.layers[layer] = {global ? 0 : window, global ? kScaled : kPlain};
  }
}

void load_layer(WeightLoader& loader, int layer, LayerWeights& w) {
  const ModelConfig& c = loader.config();
  loader.layer_attention(layer, w);
  loader.layer_vector(layer, "attn_q_norm", c.q_size(), w.q_norm);
  loader.layer_vector(layer, "attn_k_norm", c.kv_size(), w.k_norm);
  loader.layer_vector(layer, "post_attention_norm", c.hidden_size, w.post_attention_norm);
  loader.layer_feed_forward(layer, w);
  loader.layer_vector(layer, "post_ffw_norm", c.hidden_size, w.post_ffn_norm);
}

void run_layer(Ops& ops, const LayerWeights& w, int layer) {
  Activations& a = ops.activations();
  ops.matmul(a.x, {{&w.q, &a.q}, {&w.k, &a.k}, {&w.v, &a.v}});
  ops.norm(a.q, w.q_norm, a.q);
  ops.norm(a.k, w.k_norm, a.k);
  ops.rope(layer, a.q);
  ops.rope(layer, a.k);
  ops.attend(layer);
  ops.matmul(a.attended, {{&w.o, &a.y}});
  ops.norm(a.y, w.post_attention_norm, a.y);
  ops.add(a.x, a.y);

  ops.matmul(a.x, {{&w.gate, &a.gate}, {&w.up, &a.up}});
  ops.gate_mul(Gating::silu, a.gate, a.up);
  ops.matmul(a.gate, {{&w.down, &a.y}});
  ops.norm(a.y, w.post_ffn_norm, a.y);
  ops.add(a.x, a.y);
}

}  // namespace

const Family kOlmo2 = {"olmo2", configure, load_layer, run_layer};

}  // namespace couplet::model
