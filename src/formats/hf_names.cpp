#include "formats/hf_names.h"

#include <algorithm>
#include <charconv>
#include <span>

namespace couplet::formats {
namespace {

struct Rule {
  std::string_view from, to;
};

constexpr Rule kOutside[] = {{"model.embed_tokens.weight", "token_embd.weight"},
                             {"model.norm.weight", "output_norm.weight"},
                             {"lm_head.weight", "output.weight"}};

constexpr Rule kInLayer[] = {{"self_attn.q_proj", "attn_q"},
                             {"self_attn.k_proj", "attn_k"},
                             {"self_attn.v_proj", "attn_v"},
                             {"self_attn.qkv_proj", "attn_qkv"},
                             {"self_attn.o_proj", "attn_output"},
                             {"self_attn.q_norm", "attn_q_norm"},
                             {"self_attn.k_norm", "attn_k_norm"},
                             {"mlp.gate_proj", "ffn_gate"},
                             {"mlp.up_proj", "ffn_up"},
                             {"mlp.gate_up_proj", "ffn_up"},
                             {"mlp.down_proj", "ffn_down"},
                             {"mlp.gate", "ffn_gate_inp"},
                             {"mlp.router", "ffn_gate_inp"},
                             {"block_sparse_moe.gate", "ffn_gate_inp"},
                             {"self_attn.q_a_proj", "attn_q_a"},
                             {"self_attn.q_a_layernorm", "attn_q_a_norm"},
                             {"self_attn.q_b_proj", "attn_q_b"},
                             {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
                             {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
                             {"self_attn.kv_b_proj", "attn_kv_b"},
                             {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
                             {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
                             {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
                             {"input_layernorm", "attn_norm"}};

// The same name means another place where there are norms on both sides.
constexpr Rule kNorms[] = {{"post_attention_layernorm", "ffn_norm"}};
constexpr Rule kNormsAround[] = {{"post_attention_layernorm", "post_attention_norm"},
                                 {"pre_feedforward_layernorm", "ffn_norm"},
                                 {"post_feedforward_layernorm", "post_ffw_norm"}};

constexpr Rule kOfExperts[] = {{"gate_proj", "ffn_gate_exps"}, {"up_proj", "ffn_up_exps"}, {"down_proj", "ffn_down_exps"},
                               {"w1", "ffn_gate_exps"},        {"w3", "ffn_up_exps"},      {"w2", "ffn_down_exps"}};

// gpt-oss: all experts in one tensor.
struct FusedRule {
  std::string_view from, to;
  Columns columns;
};
constexpr FusedRule kFused[] = {{"mlp.experts.gate_up_proj", "ffn_gate_exps.weight", {0, 2}},
                                {"mlp.experts.gate_up_proj", "ffn_up_exps.weight", {1, 2}},
                                {"mlp.experts.gate_up_proj_bias", "ffn_gate_exps.bias", {0, 2}},
                                {"mlp.experts.gate_up_proj_bias", "ffn_up_exps.bias", {1, 2}},
                                {"mlp.experts.gate_up_proj_blocks", "ffn_gate_exps.weight", {0, 2}},
                                {"mlp.experts.gate_up_proj_blocks", "ffn_up_exps.weight", {1, 2}},
                                {"mlp.experts.down_proj_blocks", "ffn_down_exps.weight", {0, 1}},
                                {"mlp.experts.down_proj", "ffn_down_exps.weight", {0, 1}},
                                {"mlp.experts.down_proj_bias", "ffn_down_exps.bias", {0, 1}}};

std::optional<std::string_view> translate(std::span<const Rule> rules, std::string_view name) {
  for (const Rule& rule : rules)
    if (rule.from == name) return rule.to;
  return std::nullopt;
}

bool skip(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// A number as it is written, and the dot behind it.
std::optional<int> skip_number(std::string_view& text) {
  int number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (problem != std::errc() || number < 0 || (digits > 1 && text[0] == '0')) return std::nullopt;
  text.remove_prefix(digits);
  return skip(text, ".") ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<std::string> text_part(std::string_view name) {
  constexpr std::string_view kOfImages[] = {"vision_tower.", "multi_modal_projector."};
  constexpr std::string_view kOuter = "language_model.", kInner = "model.language_model.";
  std::string_view outer = name;
  skip(outer, "model.");
  for (const std::string_view prefix : kOfImages)
    if (outer.starts_with(prefix)) return std::nullopt;
  if (skip(name, kInner)) return "model." + std::string(name);
  skip(name, kOuter);
  return std::string(name);
}

std::optional<int> layer_of(std::string_view name) {
  return skip(name, "model.layers.") ? skip_number(name) : std::nullopt;
}

std::vector<HfTensorName> translate_name(const HfModelType& type, std::string_view name) {
  if (const auto outside = translate(kOutside, name)) return {{std::string(*outside)}};
  if (!skip(name, "model.layers.")) return {};
  const auto layer = skip_number(name);
  if (!layer) return {};
  const std::string prefix = "blk." + std::to_string(*layer) + ".";
  if (name == "self_attn.sinks") return {{prefix + "attn_sinks.weight"}};
  if (name == "mlp.gate.e_score_correction_bias") return {{prefix + "exp_probs_b.bias"}};
  std::vector<HfTensorName> fused;
  for (const FusedRule& rule : kFused)
    if (rule.from == name) fused.push_back({prefix + std::string(rule.to), std::nullopt, rule.columns});
  if (!fused.empty()) return fused;

  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view kind = name.substr(dot);
  if (kind != ".weight" && kind != ".bias") return {};
  name = name.substr(0, dot);
  std::optional<int> expert;
  std::optional<std::string_view> found;
  if (skip(name, "mlp.experts.") || skip(name, "block_sparse_moe.experts.")) {
    expert = skip_number(name);
    if (expert) found = translate(kOfExperts, name);
  } else {
    found = translate(kInLayer, name);
    if (!found) found = translate(type.norms_around ? std::span<const Rule>(kNormsAround) : std::span<const Rule>(kNorms), name);
  }
  if (!found) return {};
  return {{prefix + std::string(*found) + std::string(kind), expert}};
}

bool is_paired(std::string_view name) {
  constexpr std::string_view kEnds[] = {".attn_q.weight", ".attn_q_b.weight", ".attn_kv_a_mqa.weight"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
}

bool is_ballast(std::string_view name) {
  constexpr std::string_view kEnds[] = {".rotary_emb.inv_freq", ".input_scale", ".activation_scale", ".k_scale", ".v_scale"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
}

std::optional<std::string> scaled_weight(std::string_view name) {
  constexpr std::string_view kOfBlocks = "_scales";
  if (name.ends_with(kOfBlocks)) return std::string(name.substr(0, name.size() - kOfBlocks.size())) + "_blocks";
  constexpr std::string_view kEnds[] = {"_scale_inv", "_scale"};
  for (const std::string_view end : kEnds)
    if (name.ends_with(end) && name.substr(0, name.size() - end.size()).ends_with(".weight"))
      return std::string(name.substr(0, name.size() - end.size()));
  return std::nullopt;
}

}  // namespace couplet::formats
