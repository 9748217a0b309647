#include "formats/hf_config.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "couplet/error.h"
#include "formats/hf_config_reader.h"
#include "formats/printable.h"

namespace couplet::formats {
namespace {

void add_nothing(HfConfigReader&) {}

void expect_activation(const HfConfigReader& reader, const char* key, std::string_view expected) {
  const auto got = reader.json().get_string(key);
  if (got && *got != expected) reader.refuse_option(key, in_quotes(expected), in_quotes(*got));
}

// layer_types[i] of a model whose layers differ only in whether they have the window.
std::vector<bool> windowed_layers(const HfConfigReader& reader) {
  std::vector<bool> windowed;
  for (const std::string_view type : reader.json().get_strings("layer_types").value_or(std::vector<std::string_view>())) {
    if (type != "sliding_attention" && type != "full_attention")
      reader.refuse_option("layer_types", "\"sliding_attention\" and \"full_attention\"", in_quotes(type));
    windowed.push_back(type == "sliding_attention");
  }
  return windowed;
}

// All layers have the window, or none has.
void add_common_window(HfConfigReader& reader) {
  const std::vector<bool> windowed = windowed_layers(reader);
  const auto count = static_cast<std::size_t>(std::count(windowed.begin(), windowed.end(), true));
  if (count != 0 && count != windowed.size()) reader.refuse_option("layer_types", "layers of one kind", "two kinds");
  if (windowed.empty() || count != 0) reader.take_uint("sliding_window", "attention.sliding_window");
}

// Every so many layers one sees all positions; how many.
std::uint64_t add_periodic_window(HfConfigReader& reader, std::uint64_t usual_period) {
  reader.take_uint("sliding_window", "attention.sliding_window");
  std::uint64_t period = usual_period;
  for (const char* key : {"_sliding_window_pattern", "sliding_window_pattern"})
    period = reader.json().get_uint(key).value_or(period);
  const std::vector<bool> windowed = windowed_layers(reader);
  const auto first_full = std::find(windowed.begin(), windowed.end(), false);
  if (!windowed.empty()) period = static_cast<std::uint64_t>(first_full - windowed.begin()) + 1;
  for (std::size_t layer = 0; layer < windowed.size(); ++layer) {
    if (windowed[layer] == ((layer + 1) % period == 0))
      reader.refuse_option("layer_types", "full attention every so many layers", "another order");
  }
  return period;
}

void add_mixtral_keys(HfConfigReader& reader) {
  add_common_window(reader);
  reader.take_uint("num_local_experts", "expert_count");
  reader.take_uint("num_experts_per_tok", "expert_used_count");
}

// use_sliding_window turns on what the windows say.
void refuse_qwen_window(HfConfigReader& reader) {
  if (reader.json().get_bool("use_sliding_window").value_or(false))
    reader.refuse_option("use_sliding_window", "false", "true");
}

void add_qwen3_moe_keys(HfConfigReader& reader) {
  refuse_qwen_window(reader);
  reader.take_uint("num_experts", "expert_count");
  reader.take_uint("num_local_experts", "expert_count");
  reader.take_uint("num_experts_per_tok", "expert_used_count");
  reader.take_uint("moe_intermediate_size", "expert_feed_forward_length");
  reader.set("expert_weights_norm", reader.json().get_bool("norm_topk_prob").value_or(false));
  if (reader.json().get_uint("decoder_sparse_step").value_or(1) != 1)
    reader.refuse_option("decoder_sparse_step", "1", "more");
  if (!reader.json().get_uints("mlp_only_layers").value_or(std::vector<std::uint64_t>()).empty())
    reader.refuse_option("mlp_only_layers", "none", "some");
}

void add_gemma_scale(HfConfigReader& reader) {
  if (const auto scalar = reader.json().get_float("query_pre_attn_scalar"))
    reader.set("attention.scale", 1.0F / std::sqrt(static_cast<float>(*scalar)));
}

void add_caps(HfConfigReader& reader) {
  reader.take_float("attn_logit_softcapping", "attn_logit_softcapping");
  reader.take_float("final_logit_softcapping", "final_logit_softcapping");
}

void add_gemma2_keys(HfConfigReader& reader) {
  add_gemma_scale(reader);
  add_caps(reader);
  const std::uint64_t period = add_periodic_window(reader, 2);
  if (period != 2) reader.refuse_option("layer_types", "full attention in every second layer", "every " + std::to_string(period));
}

void add_gemma3_keys(HfConfigReader& reader) {
  // Its makers' files leave out what is usual.
  constexpr std::pair<const char*, std::uint64_t> kUsual[] = {
      {"attention.head_count", 8},     {"attention.head_count_kv", 4}, {"attention.key_length", 256},
      {"attention.value_length", 256}, {"context_length", 131072},     {"attention.sliding_window", 4096}};
  for (const auto& [key, value] : kUsual) reader.set_missing(key, value);
  reader.set_missing("attention.layer_norm_rms_epsilon", 1e-6F);
  reader.set_missing("attention.scale", 0.0625F);
  if (reader.json().get_bool("use_bidirectional_attention").value_or(false))
    reader.refuse_option("use_bidirectional_attention", "false", "true");
  add_gemma_scale(reader);
  add_caps(reader);
  reader.set("attention.sliding_window_pattern", add_periodic_window(reader, 6));
}

void add_granite_keys(HfConfigReader& reader) {
  reader.take_float("attention_multiplier", "attention.scale");
  reader.take_float("embedding_multiplier", "embedding_scale");
  reader.take_float("residual_multiplier", "residual_scale");
  reader.take_float("logits_scaling", "logit_scale");
}

void add_olmo3_keys(HfConfigReader& reader) {
  const std::uint64_t period = add_periodic_window(reader, 4);
  if (period != 4) reader.refuse_option("layer_types", "full attention in every fourth layer", "every " + std::to_string(period));
}

void add_gpt_oss_keys(HfConfigReader& reader) {
  const std::uint64_t period = add_periodic_window(reader, 2);
  if (period != 2) reader.refuse_option("layer_types", "full attention in every second layer", "every " + std::to_string(period));
  if (reader.json().get_float("swiglu_limit").value_or(7.0) != 7.0) reader.refuse_option("swiglu_limit", "7", "another");
  reader.take_uint("num_local_experts", "expert_count");
  reader.take_uint("num_experts_per_tok", "expert_used_count");
  reader.take_uint("intermediate_size", "expert_feed_forward_length");
}

void add_deepseek_keys(HfConfigReader& reader) {
  const JsonObject& json = reader.json();
  const std::uint64_t turned = reader.required_uint("qk_rope_head_dim");
  reader.set("attention.key_length", reader.required_uint("qk_nope_head_dim") + turned);
  reader.set("rope.dimension_count", turned);
  reader.take_uint("v_head_dim", "attention.value_length");
  reader.take_uint("kv_lora_rank", "attention.kv_lora_rank");
  reader.take_uint("q_lora_rank", "attention.q_lora_rank");
  reader.take_uint("first_k_dense_replace", "leading_dense_block_count");
  reader.take_uint("n_routed_experts", "expert_count");
  reader.take_uint("num_experts_per_tok", "expert_used_count");
  reader.take_uint("n_shared_experts", "expert_shared_count");
  reader.take_uint("moe_intermediate_size", "expert_feed_forward_length");
  reader.take_float("routed_scaling_factor", "expert_weights_scale");
  reader.set("expert_weights_norm", json.get_bool("norm_topk_prob").value_or(false));
  if (json.get_uint("num_nextn_predict_layers").value_or(0) > 0) reader.leave_layers_behind(reader.required_uint("num_hidden_layers"));
  if (json.get_uint("moe_layer_freq").value_or(1) != 1) reader.refuse_option("moe_layer_freq", "1", "more");
  if (!json.get_bool("rope_interleave").value_or(true)) reader.refuse_option("rope_interleave", "true", "false");
}

void add_deepseek2_keys(HfConfigReader& reader) {
  add_deepseek_keys(reader);
  const auto method = reader.json().get_string("topk_method").value_or("greedy");
  if (method == "group_limited_greedy") {
    reader.take_uint("n_group", "expert_group_count");
    reader.take_uint("topk_group", "expert_group_used_count");
  } else if (method != "greedy") {
    reader.refuse_option("topk_method", "greedy or group_limited_greedy", in_quotes(method));
  }
}

void add_deepseek3_keys(HfConfigReader& reader) {
  constexpr std::uint64_t kSigmoid = 2;
  add_deepseek_keys(reader);
  reader.set("expert_gating_func", kSigmoid);
  reader.take_uint("n_group", "expert_group_count");
  reader.take_uint("topk_group", "expert_group_used_count");
}

constexpr HfModelType kTypes[] = {
    // model_type, family, norms around, norms plus one, tied
    {"llama", "llama", false, false, false, add_nothing},
    {"mistral", "llama", false, false, false, add_common_window},
    {"mixtral", "llama", false, false, false, add_mixtral_keys},
    {"qwen2", "qwen2", false, false, false, refuse_qwen_window},
    {"qwen3", "qwen3", false, false, false, refuse_qwen_window},
    {"qwen3_moe", "qwen3moe", false, false, false, add_qwen3_moe_keys},
    {"gemma", "gemma", false, true, true, add_nothing},
    {"gemma2", "gemma2", true, true, true, add_gemma2_keys},
    {"gemma3_text", "gemma3", true, true, true, add_gemma3_keys},
    {"gemma3", "gemma3", true, true, true, add_gemma3_keys, true},
    {"phi3", "phi3", false, false, false, add_common_window},
    {"olmo2", "olmo2", true, false, false, add_nothing},
    {"olmo3", "olmo2", true, false, false, add_olmo3_keys},
    {"granite", "granite", false, false, false, add_granite_keys},
    {"gpt_oss", "gpt-oss", true, false, false, add_gpt_oss_keys},
    {"deepseek_v2", "deepseek2", false, false, false, add_deepseek2_keys, false, true},
    {"deepseek_v3", "deepseek2", false, false, false, add_deepseek3_keys, false, true},
    {"kimi_k2", "deepseek2", false, false, false, add_deepseek3_keys, false, true},
};

const HfModelType& find_type(const JsonObject& config) {
  const auto name = config.get_string("model_type");
  if (!name) config.refuse("model_type", "a name", "nothing");
  std::string known;
  for (const HfModelType& type : kTypes) {
    if (type.name == *name) return type;
    known += (known.empty() ? "" : ", ") + std::string(type.name);
  }
  throw Error(ErrorKind::unsupported,
              config.where() + " \"model_type\": " + in_quotes(*name) + " is not built in; of folders this engine reads: " + known);
}

// What a compressed-tensors or modelopt file calls plain F8 weights; "" where all of the method is.
bool is_f8_format(const JsonObject& quantized, std::string_view method) {
  if (method == "compressed-tensors") {
    const auto format = quantized.get_string("format").value_or("");
    return format == "float-quantized" || format == "naive-quantized";
  }
  if (method == "modelopt") return quantized.get_string("quant_algo").value_or("") == "FP8";
  return method == "fp8" || method == "fbgemm_fp8";
}

HfQuantization read_quantization(const HfConfigReader& reader) {
  const auto quantized = reader.json().get_object("quantization_config");
  if (!quantized) return {};
  const auto method = quantized->get_string("quant_method").value_or("one without a name");
  if (method == "mxfp4" && reader.json().get_string("model_type") == "gpt_oss") return {};
  if (!is_f8_format(*quantized, method)) {
    std::string name = in_quotes(method);
    for (const char* detail : {"format", "quant_algo"})
      if (const auto more = quantized->get_string(detail)) name.append(" ").append(in_quotes(*more));
    reader.refuse_option("quantization_config", "none or F8 weights", name);
  }
  HfQuantization result{.is_f8 = true};
  if (const auto block = quantized->get_uints("weight_block_size")) {
    if (block->size() != 2 || block->at(0) == 0 || block->at(1) == 0)
      quantized->refuse("weight_block_size", "two numbers of at least 1", "others");
    result.block_rows = block->at(0);
    result.block_cols = block->at(1);
  }
  return result;
}

}  // namespace

void HfConfigReader::set(const char* to, KeyValues::Value value) {
  config_.metadata.set(std::string(config_.type->family) + "." + to, std::move(value));
}

void HfConfigReader::set_missing(const char* to, KeyValues::Value value) {
  const std::string key = std::string(config_.type->family) + "." + to;
  if (!config_.metadata.has(key)) config_.metadata.set(key, std::move(value));
}

void HfConfigReader::take_uint(const char* from, const char* to) {
  if (const auto value = json_.get_uint(from)) set(to, *value);
}

// As float32, what GGUF's converters write: a folder and the file made from it say the same.
void HfConfigReader::take_float(const char* from, const char* to) {
  if (const auto value = json_.get_float(from)) set(to, static_cast<float>(*value));
}

std::uint64_t HfConfigReader::required_uint(std::string_view key) const {
  const auto value = json_.get_uint(key);
  if (!value || *value == 0) json_.refuse(key, "a whole number of at least 1", value ? "0" : "nothing");
  return *value;
}

std::optional<std::uint64_t> HfConfigReader::taken(const char* to) const {
  return config_.metadata.get_uint(std::string(config_.type->family) + "." + to);
}

std::uint64_t HfConfigReader::head_dim() const {
  const auto known = taken("attention.key_length");
  return known ? *known : required_uint("hidden_size") / required_uint("num_attention_heads");
}

void HfConfigReader::refuse_option(std::string_view key, const std::string& built, const std::string& got) const {
  throw Error(ErrorKind::unsupported,
              json_.where() + " " + in_quotes(key) + ": expected " + built + ", file says " + got + ", which is not built in");
}

HfConfig read_hf_config(const JsonObject& whole) {
  HfConfig config;
  config.type = &find_type(whole);
  const auto part = config.type->has_vision ? whole.get_object("text_config") : std::nullopt;
  if (config.type->has_vision && !part) whole.refuse("text_config", "the text model's config", "nothing");
  const JsonObject& json = part ? *part : whole;
  config.tied = json.get_bool("tie_word_embeddings").value_or(config.type->tied);
  config.metadata.set("general.architecture", std::string(config.type->family));
  HfConfigReader reader(json, config);
  config.quantization = read_quantization(reader);
  expect_activation(reader, "hidden_activation", "gelu_pytorch_tanh");
  // Gemma's first files say "gelu" here and mean the other.
  if (!config.type->norms_plus_one) expect_activation(reader, "hidden_act", "silu");
  reader.take_uint("num_hidden_layers", "block_count");
  reader.take_uint("hidden_size", "embedding_length");
  reader.take_uint("intermediate_size", "feed_forward_length");
  reader.take_uint("num_attention_heads", "attention.head_count");
  reader.take_uint("num_key_value_heads", "attention.head_count_kv");
  reader.take_uint("max_position_embeddings", "context_length");
  reader.take_float("rms_norm_eps", "attention.layer_norm_rms_epsilon");
  if (!config.type->has_pairs) {  // else a head has two sizes
    reader.take_uint("head_dim", "attention.key_length");
    reader.take_uint("head_dim", "attention.value_length");
  }
  reader.take_uint("vocab_size", "vocab_size");
  config.type->add_keys(reader);
  add_rope_keys(reader);
  return config;
}

void add_sampling_keys(const JsonObject& generation, KeyValues& metadata) {
  const auto take = [&](const char* from, const char* to) {
    if (const auto value = generation.get_float(from))
      metadata.set(std::string("general.sampling.") + to, static_cast<float>(*value));
  };
  take("temperature", "temp");
  take("top_p", "top_p");
  take("min_p", "min_p");
  take("repetition_penalty", "penalty_repeat");
  if (const auto top_k = generation.get_uint("top_k")) metadata.set("general.sampling.top_k", *top_k);
  if (!generation.get_bool("do_sample").value_or(true)) metadata.set("general.sampling.temp", 0.0F);  // greedy
}

std::vector<std::int64_t> read_end_ids(const JsonObject& config) {
  std::vector<std::int64_t> ids;
  const auto add = [&](std::uint64_t id) {
    constexpr std::uint64_t kMost = 1U << 30U;
    if (id > kMost) config.refuse("eos_token_id", "ids of at most " + std::to_string(kMost), std::to_string(id));
    ids.push_back(static_cast<std::int64_t>(id));
  };
  if (config.is_array("eos_token_id")) {
    const auto several = config.get_uints("eos_token_id");
    for (const std::uint64_t id : *several) add(id);
  } else if (const auto id = config.get_uint("eos_token_id")) {
    add(*id);
  }
  return ids;
}

}  // namespace couplet::formats
