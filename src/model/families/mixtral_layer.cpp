#include "model/families/family.h"

// Mixtral: Llama's attention, and experts in place of the feed-forward. Its files call themselves llama.

namespace couplet::model {
namespace {

bool suits(const formats::CheckpointFile& file) { return file.get_uint("llama.expert_count").value_or(0) > 0; }

void configure(const ConfigReader& reader, ModelConfig& config) {
  config.ropes = {read_rope(reader, 10000.0, config.rope_dims)};
  read_experts(reader, "feed_forward_length", config);
  const int window = reader.optional("attention.sliding_window", 0, 0, 1 << 24);
  for (LayerConfig& layer : config.layers) layer.window = window;
}

void load_layer(WeightLoader& loader, int layer, LayerWeights& w) {
  const ModelConfig& c = loader.config();
  loader.layer_vector(layer, "attn_norm", c.hidden_size, w.attention_norm);
  loader.layer_attention(layer, w);
  loader.layer_vector(layer, "ffn_norm", c.hidden_size, w.ffn_norm);
  loader.layer_experts(layer, w);
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
  ops.experts(a.y, w, Gating::silu, a.y);
  ops.add(a.x, a.y);
}

}  // namespace

const Family kMixtral = {"mixtral", configure, load_layer, run_layer, "llama", suits};

}  // namespace couplet::model
