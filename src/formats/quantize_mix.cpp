#include "formats/quantize_mix.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "couplet/error.h"
#include "formats/printable.h"

namespace couplet::formats {
namespace {

// Files of eight experts, the first of their kind, have rules of their own.
constexpr int kEightExperts = 8;
// Sharing is wide where so many query heads have one value head.
constexpr int kWide = 4;

constexpr Mix kMixes[] = {
    {"q4_0", TensorType::q4_0, 2},    {"q4_1", TensorType::q4_1, 3},    {"q5_0", TensorType::q5_0, 8},
    {"q5_1", TensorType::q5_1, 9},    {"q8_0", TensorType::q8_0, 7},    {"q2_k", TensorType::q2_k, 10},
    {"q3_k_s", TensorType::q3_k, 11}, {"q3_k_m", TensorType::q3_k, 12}, {"q3_k_l", TensorType::q3_k, 13},
    {"q4_k_s", TensorType::q4_k, 14},
    {"q4_k_m", TensorType::q4_k, 15}, {"q5_k_s", TensorType::q5_k, 16}, {"q5_k_m", TensorType::q5_k, 17},
    {"q6_k", TensorType::q6_k, 18},   {"f16", TensorType::f16, 1},      {"bf16", TensorType::bf16, 32},
    {"f32", TensorType::f32, 0},
};
constexpr Mix kAsIs{"as-is", TensorType::f32, 0};

bool is_float(TensorType type) { return info(type).block_values == 1; }

// The number in "blk.<number>."; -1: none.
int layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  int layer = -1;
  if (name.starts_with(kPrefix)) std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layer);
  return layer;
}

bool is_matrix(const Tensor& tensor) {
  return tensor.num_dims > 1 && tensor.name.ends_with("weight") && !tensor.name.ends_with("_norm.weight") &&
         !tensor.name.ends_with("ffn_gate_inp.weight");
}

// What stands in for a type whose blocks do not fit into the rows.
TensorType smaller_blocks(TensorType type) {
  switch (type) {
    case TensorType::q2_k:
    case TensorType::q3_k: return TensorType::q4_0;
    case TensorType::q4_k: return TensorType::q5_0;
    case TensorType::q5_k: return TensorType::q5_1;
    case TensorType::q6_k: return TensorType::q8_0;
    default: return type;
  }
}

int count_of(const CheckpointFile& file, const std::string& key) {
  return static_cast<int>(std::min<std::uint64_t>(file.get_uint(key).value_or(0), std::numeric_limits<int>::max()));
}

}  // namespace

std::span<const Mix> all_mixes() { return kMixes; }

const Mix& find_mix(std::string_view name) {
  if (name == kAsIs.name) return kAsIs;
  std::string names;
  for (const Mix& mix : kMixes) {
    if (mix.name == name) return mix;
    names += (names.empty() ? "" : ", ") + std::string(mix.name);
  }
  throw Error(ErrorKind::usage, "[quantize] type: expected one of " + names + ", got " + in_quotes(name));
}

MixRules::MixRules(const CheckpointFile& file, const Mix& mix) : mix_(&mix), tied_(file.find("output.weight") == nullptr) {
  const std::string family(file.get_string("general.architecture").value_or(""));
  num_layers_ = count_of(file, family + ".block_count");
  num_experts_ = count_of(file, family + ".expert_count");
  const int value_heads = count_of(file, family + ".attention.head_count_kv");
  shares_widely_ = value_heads > 0 && count_of(file, family + ".attention.head_count") / value_heads >= kWide;
  is_large_ = num_layers_ == 80 && (family == "llama" || family == "qwen2");
}

bool MixRules::has_more_bits(int layer) const {
  const int eighth = num_layers_ / 8;
  return layer < eighth || layer >= 7 * num_layers_ / 8 || (layer - eighth) % 3 == 2;
}

TensorType MixRules::values_type(int layer) const {
  if (num_experts_ == kEightExperts) return TensorType::q8_0;
  TensorType type = mix_->type;
  if (is("q2_k")) type = shares_widely_ ? TensorType::q4_k : TensorType::q3_k;
  if (is("q3_k_m")) type = layer < 2 ? TensorType::q5_k : TensorType::q4_k;
  if (is("q3_k_l")) type = TensorType::q5_k;
  if (is("q4_k_s") && layer < 4) type = TensorType::q5_k;
  if ((is("q4_k_m") || is("q5_k_m")) && has_more_bits(layer)) type = TensorType::q6_k;
  if (is_large_ && (type == TensorType::q3_k || type == TensorType::q4_k)) type = TensorType::q5_k;
  return type;
}

TensorType MixRules::down_type(int layer) const {
  if (is("q2_k")) return TensorType::q3_k;
  if (is("q3_k_m")) return layer < num_layers_ / 16 ? TensorType::q5_k : TensorType::q4_k;
  if (is("q3_k_l")) return TensorType::q5_k;
  if (is("q4_k_s") && layer < num_layers_ / 8) return TensorType::q5_k;
  if ((is("q4_k_m") || is("q5_k_m")) && has_more_bits(layer)) return TensorType::q6_k;
  return mix_->type;
}

TensorType MixRules::output_type() const {
  const bool is_small = is("q2_k") || is("q3_k_s") || is("q3_k_m") || mix_->type == TensorType::q4_k;
  if (num_experts_ == kEightExperts) return is_small ? TensorType::q5_k : mix_->type;
  if (is("q2_k")) return TensorType::q3_k;
  if (is("q3_k_m")) return TensorType::q4_k;
  if (is("q3_k_l")) return TensorType::q5_k;
  return mix_->type;
}

TensorType MixRules::wanted_type(std::string_view name, bool is_head) const {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (is_head) return is("q8_0") ? TensorType::q8_0 : TensorType::q6_k;
  if (has("attn_v.weight") || has("attn_qkv.weight")) return values_type(layer_of(name));
  if (has("attn_k.weight") && num_experts_ == kEightExperts) return TensorType::q8_0;
  if (has("ffn_down")) return down_type(layer_of(name));
  return has("attn_output.weight") ? output_type() : mix_->type;
}

TensorType MixRules::type_of(const Tensor& tensor) const {
  if (!is_matrix(tensor)) return is_float(tensor.type) ? TensorType::f32 : tensor.type;
  if (mix_ == &kAsIs) return tensor.type;
  if (is_float(mix_->type)) return mix_->type;
  const auto fits = [&](TensorType type) { return tensor.row_length() % info(type).block_values == 0; };
  const bool is_head = tensor.name == "output.weight" || (tied_ && tensor.name == "token_embd.weight");
  TensorType type = wanted_type(tensor.name, is_head);
  // A head whose rows the mix's own blocks don't fit is Q8_0, whatever else might fit.
  if (is_head && !fits(mix_->type)) type = TensorType::q8_0;
  if (!fits(type)) type = smaller_blocks(type);
  return fits(type) ? type : TensorType::f16;
}

}  // namespace couplet::formats
