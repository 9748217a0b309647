#include "model/families/family.h"

// Llama: norm, attention, residual; norm, gated feed-forward with SiLU, residual. Llama 2 and 3, SmolLM2, TinyLlama and Yi
// are of this kind, and Mistral, which sees a window. Some files have biases on the attention's projections.

namespace couplet::model {
namespace {

bool suits(const formats::CheckpointFile& file) { return file.get_uint("llama.expert_count").value_or(0) == 0; }

void configure(const ConfigReader& reader, ModelConfig& config) {
  config.ropes = {read_rope(reader, 10000.0, config.rope_dims)};
  const int window = reader.optional("attention.sliding_window", 0, 0, 1 << 24);
  for (LayerConfig& layer : config.layers) layer.window = window;
}

void load_layer(WeightLoader& loader, int layer, LayerWeights& w) {
  const ModelConfig& c = loader.config();
  loader.layer_vector(layer, "attn_norm", c.hidden_size, w.attention_norm);
  loader.layer_attention(layer, w);
  loader.optional_layer_bias(layer, "attn_q", c.q_size(), w.q_bias);
  loader.optional_layer_bias(layer, "attn_k", c.kv_size(), w.k_bias);
  loader.optional_layer_bias(layer, "attn_v", c.kv_size(), w.v_bias);
  loader.optional_layer_bias(layer, "attn_output", c.hidden_size, w.o_bias);
  loader.layer_vector(layer, "ffn_norm", c.hidden_size, w.ffn_norm);
  loader.layer_feed_forward(layer, w);
}

void run_layer(Ops& ops, const LayerWeights& w, int layer) {
  Activations& a = ops.activations();
  ops.norm(a.x, w.attention_norm, a.y);
  ops.matmul(a.y, {{&w.q, &a.q}, {&w.k, &a.k}, {&w.v, &a.v}});
  if (w.q_bias != nullptr) ops.add_bias(a.q, w.q_bias);
  if (w.k_bias != nullptr) ops.add_bias(a.k, w.k_bias);
  if (w.v_bias != nullptr) ops.add_bias(a.v, w.v_bias);
  ops.rope(layer, a.q);
  ops.rope(layer, a.k);
  ops.attend(layer);
  ops.matmul(a.attended, {{&w.o, &a.y}});
  if (w.o_bias != nullptr) ops.add_bias(a.y, w.o_bias);
  ops.add(a.x, a.y);

  ops.norm(a.x, w.ffn_norm, a.y);
  ops.matmul(a.y, {{&w.gate, &a.gate}, {&w.up, &a.up}});
  ops.gate_mul(Gating::silu, a.gate, a.up);
  ops.matmul(a.gate, {{&w.down, &a.y}});
  ops.add(a.x, a.y);
}

}  // namespace

const Family kLlama = {"llama", configure, load_layer, run_layer, "llama", suits};

}  // namespace couplet::model
