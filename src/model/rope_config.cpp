#include "model/rope_config.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/exact_math.h"
#include "couplet/error.h"
#include "model/config.h"

namespace couplet::model {
namespace {

constexpr double kPi = 0x1.921fb54442d18p1;

// The tensor's values; empty where the file has none.
std::vector<float> read_factors(const ConfigReader& reader, const char* name, int count) {
  const formats::Tensor* tensor = reader.file().find(name);
  if (tensor == nullptr) return {};
  const auto size = static_cast<std::uint64_t>(count);
  if (tensor->num_rows() != 1 || tensor->row_length() != size || tensor->type != formats::TensorType::f32)
    throw Error(ErrorKind::format, "[config] tensor \"" + std::string(name) + "\": expected " + std::to_string(count) +
                                       " F32 values, file says " + std::to_string(tensor->num_rows()) + " x " +
                                       std::to_string(tensor->row_length()) + " " + formats::info(tensor->type).name);
  std::vector<float> factors(static_cast<std::size_t>(count));
  formats::dequantize(tensor->type, tensor->bytes.data(), factors.size(), factors.data());
  for (const float factor : factors)
    if (!(factor >= 1 && factor <= 1e6F))
      throw Error(ErrorKind::format, "[config] tensor \"" + std::string(name) +
                                         "\": expected values from 1 to 1e6, file says " + std::to_string(factor));
  return factors;
}

void read_yarn(const ConfigReader& reader, RopeConfig& rope) {
  rope.beta_fast = reader.optional_float("rope.scaling.yarn_beta_fast", rope.beta_fast, 1e-3, 1e6);
  rope.beta_slow = reader.optional_float("rope.scaling.yarn_beta_slow", rope.beta_slow, 1e-3, 1e6);
  const double given = reader.optional_float("rope.scaling.attn_factor", 1.0, 1e-6, 1e6);
  rope.magnitude = given * (rope.factor > 1 ? 1.0 + 0.1 * exact_log(rope.factor) : 1.0);
}

void read_longrope(const ConfigReader& reader, int context, RopeConfig& rope) {
  const double stretch = static_cast<double>(context) / rope.original_context;
  const double usual = stretch > 1 ? std::sqrt(1.0 + exact_log(stretch) / exact_log(rope.original_context)) : 1.0;
  rope.magnitude = reader.optional_float("rope.scaling.attn_factor", usual, 1e-6, 1e6);
}

RopeScaling read_type(const ConfigReader& reader, bool has_long_factors) {
  const std::string key = reader.full("rope.scaling.type");
  const auto type = reader.file().get_string(key);
  if (!type || *type == "none") return has_long_factors ? RopeScaling::factors : RopeScaling::none;
  if (*type == "linear") return RopeScaling::linear;
  if (*type == "dynamic") return RopeScaling::dynamic;
  if (*type == "yarn") return RopeScaling::yarn;
  if (*type == "longrope" && has_long_factors) return RopeScaling::factors;
  if (*type == "longrope")
    throw Error(ErrorKind::format, "[config] \"" + key + "\": expected tensors rope_factors_short.weight and "
                                       "rope_factors_long.weight with longrope, file has none");
  throw Error(ErrorKind::unsupported, "[config] \"" + key + "\": rope scaling \"" + std::string(*type) +
                                          "\" is not built in; this engine runs: none, linear, dynamic, yarn, longrope");
}

// The dimension that turns `turns` times in the original context.
double dimension_of(double turns, const RopeConfig& rope, int dims) {
  return dims * exact_log(rope.original_context / (turns * 2 * kPi)) / (2 * exact_log(rope.theta));
}

void stretch_slow_dimensions(const RopeConfig& rope, int dims, std::vector<double>& frequencies) {
  double low = dimension_of(rope.beta_fast, rope, dims), high = dimension_of(rope.beta_slow, rope, dims);
  if (rope.whole_range) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0);
  high = std::min(high, dims - 1.0);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double stretched = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / rope.factor * stretched + frequencies[i] * (1 - stretched);
  }
}

}  // namespace

RopeConfig read_rope(const ConfigReader& reader, double default_theta, int dims) {
  constexpr int kMostContext = 1 << 20;
  RopeConfig rope;
  rope.theta = reader.optional_float("rope.freq_base", default_theta, 1.0, 1e12);
  rope.short_factors = read_factors(reader, "rope_factors_short.weight", dims / 2);
  rope.long_factors = read_factors(reader, "rope_factors_long.weight", dims / 2);
  if (rope.short_factors.empty() != rope.long_factors.empty())
    throw Error(ErrorKind::format, std::string("[config] tensor \"rope_factors_") +
                                       (rope.long_factors.empty() ? "long" : "short") +
                                       ".weight\": expected it beside the other factors, file has none");
  const int context = reader.required("context_length", 1, kMostContext);
  rope.scaling = read_type(reader, !rope.long_factors.empty());
  if (rope.scaling == RopeScaling::none) {
    rope.short_factors = rope.long_factors = read_factors(reader, "rope_freqs.weight", dims / 2);  // llama3
    if (!rope.long_factors.empty()) rope.scaling = RopeScaling::factors, rope.original_context = context;
    return rope;
  }
  if (reader.file().find("rope_freqs.weight") != nullptr)
    throw Error(ErrorKind::unsupported, "[config] tensor \"rope_freqs.weight\": expected it without \"" +
                                            reader.full("rope.scaling.type") + "\", file has both");
  rope.original_context = reader.optional("rope.scaling.original_context_length", context, 2, kMostContext);
  if (rope.scaling == RopeScaling::factors) {
    read_longrope(reader, context, rope);
    return rope;
  }
  rope.factor = reader.required_float("rope.scaling.factor", 1.0, 1e6);
  if (rope.scaling == RopeScaling::yarn) {
    if (rope.theta <= 1)
      throw Error(ErrorKind::format, "[config] \"" + reader.full("rope.freq_base") + "\": expected more than 1 with yarn, file says 1");
    read_yarn(reader, rope);
  }
  return rope;
}

std::vector<double> rope_frequencies(const RopeConfig& rope, int dims, int context) {
  double theta = rope.theta;
  if (rope.scaling == RopeScaling::dynamic && context > rope.original_context && dims > 2) {
    const double grown = rope.factor * context / rope.original_context - (rope.factor - 1);
    theta *= exact_pow(grown, static_cast<double>(dims) / (dims - 2));
  }
  std::vector<double> frequencies;
  for (int i = 0; i < dims / 2; ++i) frequencies.push_back(exact_pow(theta, -2.0 * i / dims));
  if (rope.scaling == RopeScaling::linear)
    for (double& frequency : frequencies) frequency /= rope.factor;
  if (rope.scaling == RopeScaling::yarn) stretch_slow_dimensions(rope, dims, frequencies);
  if (rope.scaling == RopeScaling::factors) {
    const std::vector<float>& factors = context > rope.original_context ? rope.long_factors : rope.short_factors;
    for (std::size_t i = 0; i < frequencies.size(); ++i) frequencies[i] /= factors[i];
  }
  return frequencies;
}

}  // namespace couplet::model
