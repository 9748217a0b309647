#include "model/config.h"

#include <cmath>
#include <optional>

#include "base/check.h"
#include "couplet/error.h"
#include "model/families/family.h"

namespace couplet::model {
namespace {

// Bounds that keep every product of sizes far inside 64 bits, and every allocation near what a real model needs.
constexpr int kMostLayers = 1024;
constexpr int kMostSize = 1 << 20;
constexpr int kMostHeads = 4096;
constexpr int kMostHeadDim = 1024;
constexpr int kMostContext = 1 << 20;  // exact_sin and exact_cos reduce angles up to here
constexpr int kMostVocabulary = 1 << 22;

[[noreturn]] void refuse(const std::string& key, const std::string& expected, const std::string& got) {
  throw Error(ErrorKind::format, "[config] \"" + key + "\": expected " + expected + ", file says " + got);
}

const Family& find_family(const formats::CheckpointFile& file) {
  const auto name = file.get_string("general.architecture");
  if (!name) throw Error(ErrorKind::format, "[config] \"general.architecture\": expected a family's name, file has none");
  std::string known;
  for (const Family* family : families()) {
    const bool named = *name == (family->architecture == nullptr ? family->name : family->architecture);
    if (named && (family->suits == nullptr || family->suits(file))) return *family;
    known += (known.empty() ? "" : ", ") + std::string(family->name);
  }
  throw Error(ErrorKind::unsupported,
              "[config] family \"" + std::string(*name) + "\" is not built in; this engine runs: " + known);
}

int read_vocab_size(const formats::CheckpointFile& file) {
  const formats::Tensor* embedding = file.find("token_embd.weight");
  if (embedding == nullptr)
    throw Error(ErrorKind::format, "[config] tensor \"token_embd.weight\": expected the token embeddings, file has none");
  if (embedding->num_rows() < 1 || embedding->num_rows() > kMostVocabulary)
    refuse("token_embd.weight", "1 to " + std::to_string(kMostVocabulary) + " rows", std::to_string(embedding->num_rows()));
  return static_cast<int>(embedding->num_rows());
}

}  // namespace

int ConfigReader::required(const char* key, int least, int most) const {
  const std::string name = full(key);
  const std::string range = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  const std::optional<std::uint64_t> value = file_->get_uint(name);
  if (!value) refuse(name, range, "nothing");
  if (*value < static_cast<std::uint64_t>(least) || *value > static_cast<std::uint64_t>(most))
    refuse(name, range, std::to_string(*value));
  return static_cast<int>(*value);
}

int ConfigReader::optional(const char* key, int fallback, int least, int most) const {
  return file_->get_uint(full(key)) ? required(key, least, most) : fallback;
}

bool ConfigReader::optional_bool(const char* key, bool fallback) const {
  return file_->get_bool(full(key)).value_or(fallback);
}

double ConfigReader::required_float(const char* key, double least, double most) const {
  const std::string name = full(key);
  const std::string range = "a number from " + std::to_string(least) + " to " + std::to_string(most);
  const std::optional<double> value = file_->get_float(name);
  if (!value) refuse(name, range, "nothing");
  if (!(*value >= least && *value <= most)) refuse(name, range, std::to_string(*value));
  return *value;
}

double ConfigReader::optional_float(const char* key, double fallback, double least, double most) const {
  return file_->get_float(full(key)) ? required_float(key, least, most) : fallback;
}

void read_experts(const ConfigReader& reader, const char* size_key, ModelConfig& config) {
  constexpr int kMostExperts = 1024;
  config.num_experts = reader.required("expert_count", 1, kMostExperts);
  config.num_used_experts = reader.required("expert_used_count", 1, config.num_experts);
  config.expert_size = reader.required(size_key, 1, kMostSize);
}

void read_heads(const ConfigReader& reader, ModelConfig& config) {
  config.num_kv_heads = reader.optional("attention.head_count_kv", config.num_heads, 1, kMostHeads);
  if (config.num_heads % config.num_kv_heads != 0)
    refuse(reader.full("attention.head_count_kv"), "a divisor of the " + std::to_string(config.num_heads) + " heads",
           std::to_string(config.num_kv_heads));
  const bool has_head_dim = reader.file().get_uint(reader.full("attention.key_length")).has_value();
  if (!has_head_dim && config.hidden_size % config.num_heads != 0)
    refuse(reader.full("attention.head_count"), "a divisor of the hidden size " + std::to_string(config.hidden_size),
           std::to_string(config.num_heads));
  config.head_dim = reader.optional("attention.key_length", config.hidden_size / config.num_heads, 1, kMostHeadDim);
  const int value_dim = reader.optional("attention.value_length", config.head_dim, 1, kMostHeadDim);
  if (value_dim != config.head_dim)
    refuse(reader.full("attention.value_length"), std::to_string(config.head_dim) + ", the key length",
           std::to_string(value_dim));
  config.rope_dims = reader.optional("rope.dimension_count", config.head_dim, 2, config.head_dim);
  if (config.rope_dims % 2 != 0)
    refuse(reader.full("rope.dimension_count"), "an even number", std::to_string(config.rope_dims));
  config.attention_scale = static_cast<float>(reader.optional_float(
      "attention.scale", 1.0F / std::sqrt(static_cast<float>(config.head_dim)), 1e-6, 1e6));
}

ModelConfig read_config(const formats::CheckpointFile& file) {
  const Family& family = find_family(file);
  const ConfigReader reader(file, family.architecture == nullptr ? family.name : family.architecture);
  ModelConfig config;
  config.family = &family;
  config.name = std::string(file.get_string("general.name").value_or(""));
  config.num_layers = reader.required("block_count", 1, kMostLayers);
  config.hidden_size = reader.required("embedding_length", 1, kMostSize);
  config.intermediate_size = reader.required("feed_forward_length", 1, kMostSize);
  config.num_heads = reader.required("attention.head_count", 1, kMostHeads);
  config.context_length = reader.required("context_length", 1, kMostContext);
  config.rms_norm_eps = static_cast<float>(reader.required_float("attention.layer_norm_rms_epsilon", 0.0, 1.0));
  config.vocab_size = read_vocab_size(file);
  family.read_heads(reader, config);
  config.layers.resize(static_cast<std::size_t>(config.num_layers));
  family.configure(reader, config);
  COUPLET_CHECK(!config.ropes.empty());
  return config;
}

}  // namespace couplet::model
