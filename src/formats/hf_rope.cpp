// Rope as config.json says it: "rope_theta" and "rope_scaling" until transformers 4, "rope_parameters" from 5 on, there one
// for each kind of layer where they differ.

#include <cmath>
#include <numbers>
#include <string>

#include "base/exact_math.h"
#include "couplet/error.h"
#include "formats/hf_config_reader.h"
#include "formats/printable.h"

namespace couplet::formats {
namespace {

constexpr std::uint64_t kMostHeadDim = 1024;

double required_float(const JsonObject& rope, std::string_view key) {
  const auto value = rope.get_float(key);
  if (!value || !(*value > 0)) rope.refuse(key, "a number above 0", value ? std::to_string(*value) : "nothing");
  return *value;
}

std::uint64_t rope_dims(const HfConfigReader& reader, const JsonObject* rope) {
  if (const auto known = reader.taken("rope.dimension_count")) return *known;
  double part = reader.json().get_float("partial_rotary_factor").value_or(1.0);
  if (rope) part = rope->get_float("partial_rotary_factor").value_or(part);
  const std::uint64_t head_dim = reader.head_dim();
  if (head_dim > kMostHeadDim || !(part > 0 && part <= 1))
    reader.json().refuse("head_dim", "at most 1024 dimensions, a part of them turned", "more");
  return static_cast<std::uint64_t>(static_cast<double>(head_dim) * part);
}

// Llama 3 keeps fast dimensions, stretches slow ones by the factor, and blends between; GGUF holds what each frequency is
// divided by.
std::vector<float> llama3_factors(const JsonObject& rope, double theta, std::uint64_t dims) {
  const double factor = required_float(rope, "factor");
  const double low = required_float(rope, "low_freq_factor"), high = required_float(rope, "high_freq_factor");
  const double context = required_float(rope, "original_max_position_embeddings");
  std::vector<float> factors;
  for (std::uint64_t i = 0; i < dims / 2; ++i) {
    const double frequency = exact_pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(dims));
    const double turns = context * frequency / (2 * std::numbers::pi);
    const double kept = turns > high ? 1.0 : turns < low ? 0.0 : (turns - low) / (high - low);
    factors.push_back(static_cast<float>(1.0 / ((1.0 - kept) / factor + kept)));
  }
  return factors;
}

std::vector<float> longrope_factors(const JsonObject& rope, std::string_view key, std::uint64_t dims) {
  const auto values = rope.get_floats(key);
  if (!values || values->size() != dims / 2)
    rope.refuse(key, std::to_string(dims / 2) + " numbers", values ? std::to_string(values->size()) : "nothing");
  std::vector<float> factors;
  for (const double value : *values) factors.push_back(static_cast<float>(value));
  return factors;
}

void add_longrope_magnitude(HfConfigReader& reader, const JsonObject& rope, std::optional<std::uint64_t> original) {
  auto magnitude = rope.get_float("attention_factor");
  const auto context = reader.json().get_uint("max_position_embeddings");
  if (!magnitude && context && original && *original > 1) {
    const double stretch = static_cast<double>(*context) / static_cast<double>(*original);
    magnitude = stretch > 1 ? std::sqrt(1 + exact_log(stretch) / exact_log(static_cast<double>(*original))) : 1.0;
  }
  if (magnitude) reader.set("rope.scaling.attn_factor", static_cast<float>(*magnitude));
}

void add_betas(HfConfigReader& reader, const JsonObject& rope) {
  if (const auto fast = rope.get_float("beta_fast")) reader.set("rope.scaling.yarn_beta_fast", static_cast<float>(*fast));
  if (const auto slow = rope.get_float("beta_slow")) reader.set("rope.scaling.yarn_beta_slow", static_cast<float>(*slow));
}

// Part of what yarn multiplies by goes into the scores' scale, and GGUF's attn_factor is what is left.
void add_deepseek_yarn(HfConfigReader& reader, const JsonObject& rope, double factor) {
  const auto grown = [&](double by) { return factor > 1 ? 1.0 + 0.1 * by * exact_log(factor) : 1.0; };
  const double scale = rope.get_float("mscale").value_or(0), of_scores = rope.get_float("mscale_all_dim").value_or(0);
  const double usual = scale != 0 && of_scores != 0 ? grown(scale) / grown(of_scores) : grown(1);
  reader.set("rope.scaling.attn_factor", static_cast<float>(rope.get_float("attention_factor").value_or(usual)));
  reader.set("rope.scaling.yarn_log_multiplier", static_cast<float>(0.1 * of_scores));
  add_betas(reader, rope);
}

// GGUF's attn_factor of yarn comes on top of the usual 1 + 0.1 ln(factor).
void add_yarn(HfConfigReader& reader, const JsonObject& rope, double factor) {
  if (reader.type().has_pairs) return add_deepseek_yarn(reader, rope, factor);
  for (const char* key : {"mscale", "mscale_all_dim"})
    if (rope.has(key)) reader.refuse_option(key, "none", "one");
  // GGUF has no key for it: gpt-oss never rounds the range of stretched dimensions to whole ones, all others do.
  const bool truncates = reader.json().get_string("model_type") != "gpt_oss";
  if (rope.get_bool("truncate").value_or(true) != truncates)
    reader.refuse_option("truncate", truncates ? "true" : "false", truncates ? "false" : "true");
  const double usual = factor > 1 ? 1.0 + 0.1 * exact_log(factor) : 1.0;
  if (const auto given = rope.get_float("attention_factor"))
    reader.set("rope.scaling.attn_factor", static_cast<float>(*given / usual));
  add_betas(reader, rope);
}

void add_scaling(HfConfigReader& reader, const JsonObject& rope, double theta, std::uint64_t dims) {
  auto type = rope.get_string("rope_type");
  if (!type) type = rope.get_string("type");
  if (!type || *type == "default") return;
  if (*type == "llama3") return reader.add_factors("rope_freqs.weight", llama3_factors(rope, theta, dims));
  auto original = rope.get_uint("original_max_position_embeddings");
  if (!original) original = reader.json().get_uint("original_max_position_embeddings");
  if (original) reader.set("rope.scaling.original_context_length", *original);
  if (*type == "longrope" || *type == "su") {
    reader.set("rope.scaling.type", std::string("longrope"));
    reader.add_factors("rope_factors_long.weight", longrope_factors(rope, "long_factor", dims));
    reader.add_factors("rope_factors_short.weight", longrope_factors(rope, "short_factor", dims));
    add_longrope_magnitude(reader, rope, original);
    return;
  }
  if (*type != "linear" && *type != "dynamic" && *type != "yarn")
    reader.refuse_option("rope_type", "default, linear, dynamic, yarn, llama3 or longrope", in_quotes(*type));
  const double factor = required_float(rope, "factor");
  reader.set("rope.scaling.type", std::string(*type));
  reader.set("rope.scaling.factor", static_cast<float>(factor));
  if (*type == "yarn") add_yarn(reader, rope, factor);
}

}  // namespace

void add_rope_keys(HfConfigReader& reader) {
  const JsonObject& json = reader.json();
  reader.take_float("rope_theta", "rope.freq_base");
  reader.take_float("rope_local_base_freq", "rope.freq_base_swa");
  std::optional<JsonObject> rope = json.get_object("rope_scaling");
  if (!rope) rope = json.get_object("rope_parameters");
  if (rope && rope->has("full_attention")) {
    if (const auto local = rope->get_object("sliding_attention")) {
      if (const auto theta = local->get_float("rope_theta")) reader.set("rope.freq_base_swa", static_cast<float>(*theta));
    }
    rope = rope->get_object("full_attention");
  }
  const std::uint64_t dims = rope_dims(reader, rope ? &*rope : nullptr);
  reader.set("rope.dimension_count", dims);
  if (!rope) return;
  const double theta = rope->get_float("rope_theta").value_or(json.get_float("rope_theta").value_or(10000.0));
  if (rope->has("rope_theta")) reader.set("rope.freq_base", static_cast<float>(theta));
  add_scaling(reader, *rope, theta, dims);
}

}  // namespace couplet::formats
