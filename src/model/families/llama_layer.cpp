#include "model/families/family.h"

// Llama: norm, attention, residual; norm, gated feed-forward with SiLU, residual. SmolLM2 is one of these.

namespace couplet::model {
namespace {

void configure(const ConfigReader& reader, ModelConfig& config) {
  config.rope_thetas = {reader.optional_float("rope.freq_base", 10000.0, 1.0, 1e12)};
}

void load_layer(WeightLoader& loader, int layer, LayerWeights& w) {
  const ModelConfig& c = loader.config();
  loader.layer_vector(layer, "attn_norm", c.hidden_size, w.attention_norm);
  loader.layer_matrix(layer, "attn_q", c.q_size(), c.hidden_size, w.q);
  loader.layer_matrix(layer, "attn_k", c.kv_size(), c.hidden_size, w.k);
  loader.layer_matrix(layer, "attn_v", c.kv_size(), c.hidden_size, w.v);
  loader.layer_matrix(layer, "attn_output", c.hidden_size, c.q_size(), w.o);
  loader.layer_vector(layer, "ffn_norm", c.hidden_size, w.ffn_norm);
  loader.layer_matrix(layer, "ffn_gate", c.intermediate_size, c.hidden_size, w.gate);
  loader.layer_matrix(layer, "ffn_up", c.intermediate_size, c.hidden_size, w.up);
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
  ops.silu_mul(a.gate, a.up);
  ops.matmul(a.gate, {{&w.down, &a.y}});
  ops.add(a.x, a.y);
}

}  // namespace

const Family kLlama = {"llama", configure, load_layer, run_layer};

}  // namespace couplet::model
