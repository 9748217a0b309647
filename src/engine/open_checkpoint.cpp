#include "engine/open_checkpoint.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/float_environment.h"
#include "couplet/error.h"
#include "engine/request_check.h"
#include "engine/weights_id.h"
#include "formats/quantized_file.h"
#include "model/families/family.h"
#include "model/forward.h"
#include "model/weights.h"
#include "text/load.h"

namespace couplet {
namespace engine {

std::vector<TensorTypeSummary> summarize_tensors(const formats::CheckpointFile& file) {
  std::array<TensorTypeSummary, formats::kNumTensorTypes> by_type;
  for (const formats::Tensor& tensor : file.tensors()) {
    TensorTypeSummary& entry = by_type[static_cast<std::size_t>(tensor.type)];
    entry.type = formats::info(tensor.type).name;
    entry.count += 1;
    entry.bytes += tensor.size_bytes();
  }
  std::vector<TensorTypeSummary> present;
  for (const TensorTypeSummary& entry : by_type)
    if (entry.count > 0) present.push_back(entry);
  std::sort(present.begin(), present.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return present;
}

namespace {

SamplingDefaults read_sampling_defaults(const formats::CheckpointFile& file, int vocab_size) {
  SamplingDefaults defaults;
  SamplingOptions checked;
  const auto read = [&](const char* key, std::optional<float>& target, float& option) {
    if (const auto value = file.get_float(key)) target = option = static_cast<float>(*value);
  };
  read("general.sampling.temp", defaults.temperature, checked.temperature);
  read("general.sampling.top_p", defaults.top_p, checked.top_p);
  read("general.sampling.min_p", defaults.min_p, checked.min_p);
  read("general.sampling.penalty_repeat", defaults.repetition_penalty, checked.repetition_penalty);
  if (const auto top_k = file.get_uint("general.sampling.top_k"))
    defaults.top_k = static_cast<int>(std::min<std::uint64_t>(*top_k, std::numeric_limits<int>::max()));
  if (const std::string refusal = check(checked, {}, vocab_size); !refusal.empty())
    throw Error(ErrorKind::format, "[config] general.sampling: " + refusal);
  return defaults;
}

void summarize(const formats::CheckpointFile& file, const model::ModelConfig& config, CheckpointSummary& s) {
  s.family = config.family->name;
  s.file_bytes = file.file_bytes();
  for (const formats::Tensor& tensor : file.tensors()) {
    s.num_parameters += tensor.row_length() * tensor.num_rows();
    s.weights_bytes += model::packed_bytes(tensor);
  }
  s.num_layers = config.num_layers;
  s.hidden_size = config.hidden_size;
  s.intermediate_size = config.intermediate_size;
  s.num_heads = config.num_heads;
  s.num_kv_heads = config.num_kv_heads;
  s.head_dim = config.head_dim;
  s.vocab_size = config.vocab_size;
  s.context_length = config.context_length;
  for (const model::LayerConfig& layer : config.layers) s.sliding_window = std::max(s.sliding_window, layer.window);
  s.tensor_types = summarize_tensors(file);
  s.sampling = read_sampling_defaults(file, s.vocab_size);
}

}  // namespace

OpenCheckpoint::OpenCheckpoint(std::unique_ptr<formats::CheckpointFile> file, const OpenOptions& options)
    : file_(std::move(file)) {
  summary_.file_format = file_->format();
  summary_.name = file_->get_string("general.name").value_or("");
  summary_.lacks_weights = file_->lacks_weights();
  summary_.quantized_as = file_->quantized_as();
  if (summary_.lacks_weights.empty()) config_ = model::read_config(*file_);
  tokenizer_ = text::load_tokenizer(*file_, options.pre_tokenizer);
  chat_template_ = text::load_chat_template(*file_, *tokenizer_);
  if (!config_) return;
  if (tokenizer_->vocab_size() > config_->vocab_size)
    throw Error(ErrorKind::format, "[tokenizer] expected at most " + std::to_string(config_->vocab_size) +
                                       " tokens, one an embedding row, file says " +
                                       std::to_string(tokenizer_->vocab_size()));
  summarize(*file_, *config_, summary_);
}

const model::ModelConfig& OpenCheckpoint::config() const {
  if (!config_) throw Error(ErrorKind::not_found, summary_.lacks_weights);
  return *config_;
}

std::uint64_t OpenCheckpoint::cache_bytes_per_position(CacheFormat format, Precision precision) const {
  return model::cache_shape(config(), page_format(format, precision)).page_bytes() / kernels::kPagePositions;
}

PackedCopy OpenCheckpoint::packed_copy(const std::string& packed_folder) const {
  return model::find_packed_copy(*file_, config(), {.folder = packed_folder});
}

std::string OpenCheckpoint::weights_id() const { return engine::weights_id(*file_); }

}  // namespace engine

SamplingOptions default_sampling(const SamplingDefaults& own) {
  SamplingOptions options;
  if (own.temperature || own.top_p || own.min_p || own.top_k || own.repetition_penalty)
    options.temperature = options.top_p = 1;
  options.temperature = own.temperature.value_or(options.temperature);
  options.top_k = own.top_k.value_or(options.top_k);
  options.top_p = own.top_p.value_or(options.top_p);
  options.min_p = own.min_p.value_or(options.min_p);
  options.repetition_penalty = own.repetition_penalty.value_or(options.repetition_penalty);
  return options;
}

std::shared_ptr<const Checkpoint> Checkpoint::open(const std::filesystem::path& path, const OpenOptions& options) {
  const StandardFloats floats;  // scales are computed while the config is read
  const formats::Mix* mix = options.quantize.empty() ? nullptr : &formats::find_mix(options.quantize);
  std::unique_ptr<formats::CheckpointFile> file = formats::CheckpointFile::open(path);
  if (mix != nullptr) file = std::make_unique<formats::QuantizedFile>(std::move(file), *mix);
  return std::make_shared<engine::OpenCheckpoint>(std::move(file), options);
}

}  // namespace couplet
