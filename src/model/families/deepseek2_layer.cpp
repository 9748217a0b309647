#include <cmath>

#include "base/exact_math.h"
#include "couplet/error.h"
#include "model/families/family.h"

// DeepSeek V2, V2 Lite, V3 and R1: latent attention, which caches one compressed vector a position (ops_latent.cpp); after
// some dense layers experts, chosen from groups of them, and one that every row has. V3's scores are sigmoids with a
// bias. Kimi K2 is of this kind.

namespace couplet::model {
namespace {

constexpr int kMostSize = 1 << 20;

void read_latent_heads(const ConfigReader& reader, ModelConfig& config) {
  constexpr int kMostDim = 1024;
  LatentConfig& latent = config.latent;
  latent.rank = reader.required("attention.kv_lora_rank", 1, kMostDim);
  latent.query_rank = reader.optional("attention.q_lora_rank", 0, 0, kMostSize);
  config.rope_dims = reader.required("rope.dimension_count", 2, kMostDim);
  if (config.rope_dims % 2 != 0)
    throw Error(ErrorKind::format, "[config] \"" + reader.full("rope.dimension_count") +
                                       "\": expected an even number, file says " + std::to_string(config.rope_dims));
  // Newer files give the sizes of what is cached as key_length and value_length, and those of a head by keys of their own.
  const bool newer = reader.file().get_uint(reader.full("attention.key_length_mla")).has_value();
  const int key = reader.required(newer ? "attention.key_length_mla" : "attention.key_length", config.rope_dims + 1, 2 * kMostDim);
  latent.key_dim = key - config.rope_dims;
  latent.value_dim = reader.required(newer ? "attention.value_length_mla" : "attention.value_length", 1, kMostDim);
  config.num_kv_heads = 1;
  config.head_dim = latent.rank + config.rope_dims;
  config.rope_begin = latent.rank;
  config.attention_scale = 1.0F / std::sqrt(static_cast<float>(key));
}

void read_routing(const ConfigReader& reader, ModelConfig& config) {
  enum Scoring { kSoftmax = 1, kSigmoid = 2 };
  read_experts(reader, "expert_feed_forward_length", config);
  config.num_dense_layers = reader.optional("leading_dense_block_count", 0, 0, config.num_layers);
  const int most_shared = kMostSize / config.expert_size;
  config.shared_expert_size = config.expert_size * reader.optional("expert_shared_count", 0, 0, most_shared);
  config.sigmoid_experts = reader.optional("expert_gating_func", kSoftmax, kSoftmax, kSigmoid) == kSigmoid;
  config.normalize_experts = reader.optional_bool("expert_weights_norm", false);
  config.expert_scale = static_cast<float>(reader.optional_float("expert_weights_scale", 1.0, 1e-6, 1e6));
  const int groups = config.num_expert_groups = reader.optional("expert_group_count", 1, 1, config.num_experts);
  config.num_used_groups = reader.optional("expert_group_used_count", groups, 1, groups);
  if (config.num_experts % groups != 0 || config.num_experts / groups * config.num_used_groups < config.num_used_experts)
    throw Error(ErrorKind::format, "[config] \"" + reader.full("expert_group_count") + "\": expected groups of one size that " +
                                       "have the " + std::to_string(config.num_used_experts) + " experts of a row in " +
                                       std::to_string(config.num_used_groups) + " of them, file says " +
                                       std::to_string(groups) + " of " + std::to_string(config.num_experts));
}

void configure(const ConfigReader& reader, ModelConfig& config) {
  RopeConfig rope = read_rope(reader, 10000.0, config.rope_dims);
  if (rope.scaling == RopeScaling::yarn) {
    // Yarn's stretched context sharpens the scores, by this much for both factors of a product; nothing grows with turning.
    const double growth = reader.optional_float("rope.scaling.yarn_log_multiplier", 0.0, 0.0, 100.0);
    const double sharper = 1.0 + growth * exact_log(rope.factor);
    config.attention_scale *= static_cast<float>(sharper * sharper);
    rope.magnitude = reader.optional_float("rope.scaling.attn_factor", 1.0, 1e-6, 1e6);
  }
  config.ropes = {rope};
  read_routing(reader, config);
}

void load_layer(WeightLoader& loader, int layer, LayerWeights& w) {
  const ModelConfig& c = loader.config();
  const LatentConfig& latent = c.latent;
  loader.layer_vector(layer, "attn_norm", c.hidden_size, w.attention_norm);
  if (latent.query_rank > 0) {
    loader.layer_matrix(layer, "attn_q_a", latent.query_rank, c.hidden_size, w.query_down);
    loader.layer_vector(layer, "attn_q_a_norm", latent.query_rank, w.query_norm);
    loader.layer_latent_query(layer, "attn_q_b", latent.query_rank, w.q);
  } else {
    loader.layer_latent_query(layer, "attn_q", c.hidden_size, w.q);
  }
  loader.layer_matrix(layer, "attn_kv_a_mqa", c.head_dim, c.hidden_size, w.latent_down);
  loader.layer_vector(layer, "attn_kv_a_norm", latent.rank, w.latent_norm);
  loader.layer_latent_heads(layer, w);
  loader.layer_matrix(layer, "attn_output", c.hidden_size, c.num_heads * latent.value_dim, w.o);

  loader.layer_vector(layer, "ffn_norm", c.hidden_size, w.ffn_norm);
  if (layer < c.num_dense_layers) {
    loader.layer_feed_forward(layer, w);
    return;
  }
  loader.layer_experts(layer, w);
  if (c.sigmoid_experts) loader.optional_layer_bias(layer, "exp_probs_b", c.num_experts, w.expert_bias);
  if (c.shared_expert_size > 0) loader.layer_shared_expert(layer, w);
}

void attention(Ops& ops, const LayerWeights& w, int layer) {
  Activations& a = ops.activations();
  const LatentConfig& latent = ops.config().latent;
  ops.norm(a.x, w.attention_norm, a.y);
  if (latent.query_rank > 0) {
    ops.matmul(a.y, {{&w.query_down, &a.latent_query}, {&w.latent_down, &a.k}});
    ops.norm(a.latent_query, w.query_norm, a.latent_query);
    ops.matmul(a.latent_query, {{&w.q, &a.head_query}});
  } else {
    ops.matmul(a.y, {{&w.q, &a.head_query}, {&w.latent_down, &a.k}});
  }
  ops.norm(a.k.first(latent.rank), w.latent_norm, a.k.first(latent.rank));
  ops.take_in_keys(w);
  ops.rope(layer, a.q);
  ops.rope(layer, a.k);
  ops.attend(layer);
  ops.take_out_values(w);
  ops.matmul(a.head_value, {{&w.o, &a.y}});
  ops.add(a.x, a.y);
}

void run_layer(Ops& ops, const LayerWeights& w, int layer) {
  attention(ops, w, layer);
  Activations& a = ops.activations();
  ops.norm(a.x, w.ffn_norm, a.y);
  // Gate and up hold what the row's shared expert makes of it while the others use y; without one, what all do.
  const bool has_experts = !w.experts.empty(), has_shared = w.gate.rows > 0;
  const Rows gate = a.gate.first(w.gate.rows), up = a.up.first(w.up.rows);
  if (has_shared) {
    ops.matmul(a.y, {{&w.gate, &gate}, {&w.up, &up}});
    ops.gate_mul(Gating::silu, gate, up);
  }
  if (has_experts) {
    ops.experts(a.y, w, Gating::silu, a.y);
    ops.add(a.x, a.y);
  }
  if (has_shared) {
    ops.matmul(gate, {{&w.down, &a.y}});
    ops.add(a.x, a.y);
  }
}

}  // namespace

const Family kDeepseek2 = {"deepseek2", configure, load_layer, run_layer, nullptr, nullptr, read_latent_heads};

}  // namespace couplet::model
