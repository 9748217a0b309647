#include "formats/hf_folder.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "couplet/error.h"
#include "formats/printable.h"

namespace couplet::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostConfigBytes = std::size_t{16} << 20;
constexpr std::size_t kMostIndexBytes = std::size_t{100} << 20;

[[noreturn]] void fail(ErrorKind kind, const std::string& problem) { throw Error(kind, "[safetensors] " + problem); }
[[noreturn]] void fail(const SafeTensor& tensor, ErrorKind kind, const std::string& problem) {
  fail(kind, "tensor " + in_quotes(tensor.name) + ": " + problem);
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

JsonDocument read_json(std::span<const std::byte> text, const char* name) {
  return JsonDocument(text, std::string("[folder] ") + name, kMostConfigBytes);
}

// Runs `read`; its errors end with the file's name.
template <class Read>
auto naming(const fs::path& path, Read read) try {
  return read();
} catch (const Error& error) {
  throw Error(error.kind(), std::string(error.what()) + " (in " + in_quotes(path.filename().native()) + ")");
}

TensorType type_of(const SafeTensor& tensor) {
  for (const TensorType type : {TensorType::f32, TensorType::f16, TensorType::bf16})
    if (tensor.dtype == info(type).name) return type;
  fail(tensor, ErrorKind::unsupported, "expected F32, F16 or BF16, file says " + std::string(tensor.dtype));
}

Tensor to_tensor(const SafeTensor& from) {
  Tensor tensor{};
  tensor.type = type_of(from);
  tensor.dims.fill(1);
  tensor.num_dims = std::max(1, static_cast<int>(from.shape.size()));
  std::copy(from.shape.rbegin(), from.shape.rend(), tensor.dims.begin());
  tensor.bytes = from.bytes;
  return tensor;
}

}  // namespace

HfFolder::HfFolder(const fs::path& folder) {
  if (!is_there(folder / "model.safetensors") && !is_there(folder / "model.safetensors.index.json")) return;
  MappedFile config(folder / "config.json");
  config_ = read_hf_config(read_json(config.bytes(), "config.json").root());
  config_.metadata.set("general.name", fs::absolute(folder / "").lexically_normal().parent_path().filename().string());
  if (is_there(folder / "generation_config.json")) {
    const MappedFile generation(folder / "generation_config.json");
    add_sampling_keys(read_json(generation.bytes(), "generation_config.json").root(), config_.metadata);
  }
  add_shards(folder);
  parts_.push_back({config.stamp(), config.bytes(), config.bytes()});
  files_.push_back(std::move(config));
  finish();
}

HfFolder::HfFolder(std::span<const std::byte> config, std::span<const std::byte> weights)
    : config_(read_hf_config(read_json(config, "config.json").root())) {
  file_bytes_ = weights.size();
  take(read_safetensors(weights).tensors);
  finish();
}

void HfFolder::add_shards(const fs::path& folder) {
  if (!is_there(folder / "model.safetensors")) return add_listed_shards(folder);
  std::vector<SafeTensor> tensors;
  add_file(folder / "model.safetensors", tensors);
  take(tensors);
}

// The index says which file has which tensor; each file must have just those.
void HfFolder::add_listed_shards(const fs::path& folder) {
  constexpr const char* kIndex = "model.safetensors.index.json";
  const MappedFile file(folder / kIndex);
  const JsonDocument document(file.bytes(), std::string("[safetensors] ") + kIndex, kMostIndexBytes);
  const auto map = document.root().get_object("weight_map");
  if (!map) document.root().refuse("weight_map", "the file of each tensor", "nothing");
  std::map<std::string, std::vector<std::string_view>> shards;
  for (const auto field : map->object()) {
    std::string_view shard;
    if (field.value.get(shard) != simdjson::SUCCESS || !is_printable(shard) || shard.find('/') != std::string_view::npos ||
        !shard.ends_with(".safetensors"))
      map->refuse(field.key, "the name of a .safetensors file beside the index", simdjson::minify(field.value).substr(0, 80));
    shards[std::string(shard)].push_back(field.key);
  }
  for (auto& [name, listed] : shards) {
    std::vector<SafeTensor> tensors;
    add_file(folder / name, tensors);
    const NameIndex present(tensors, [](const SafeTensor& tensor) -> std::string_view { return tensor.name; });
    for (const std::string_view tensor : listed)
      if (!present.find(tensor))
        fail(ErrorKind::format, "tensor " + in_quotes(tensor) + ": expected it in " + in_quotes(name) + ", as the index says, it isn't there");
    std::ranges::sort(listed);
    for (const SafeTensor& tensor : tensors)
      if (!std::ranges::binary_search(listed, tensor.name))
        fail(tensor, ErrorKind::format, "expected it where the index says, " + in_quotes(name) + " has it too");
    take(tensors);
  }
}

void HfFolder::add_file(const fs::path& path, std::vector<SafeTensor>& into) {
  MappedFile file(path);
  SafetensorsFile table = naming(path, [&] { return read_safetensors(file.bytes()); });
  file_bytes_ += file.bytes().size();
  parts_.push_back({file.stamp(), file.bytes(), table.header});
  into = std::move(table.tensors);
  files_.push_back(std::move(file));
}

void HfFolder::take(std::span<const SafeTensor> shard) {
  for (const SafeTensor& from : shard) {
    if (is_ballast(from.name) || (config_.tied && from.name == "lm_head.weight")) continue;
    const auto name = translate_name(*config_.type, from.name);
    if (!name)
      fail(from, ErrorKind::unsupported,
           "expected a name of model_type " + in_quotes(config_.type->name) + ", none of its tensors has this one");
    Tensor tensor = to_tensor(from);
    if (name->expert) {
      if (!experts_[name->name].emplace(*name->expert, tensor).second)
        fail(from, ErrorKind::format, "expected one of this expert, folder has several");
      continue;
    }
    if (config_.type->norms_plus_one && name->name.ends_with("norm.weight")) {
      const std::size_t count = tensor.row_length() * tensor.num_rows();
      const auto bytes = new_bytes(count * sizeof(float));
      auto* values = reinterpret_cast<float*>(bytes.data());
      dequantize(tensor.type, tensor.bytes.data(), count, values);
      for (std::size_t i = 0; i < count; ++i) values[i] += 1.0F;
      tensor.type = TensorType::f32;
      tensor.bytes = bytes;
    }
    add_tensor(tensor, name->name);
  }
}

void HfFolder::join_experts(const std::string& name, const ExpertParts& parts) {
  const std::string where = "tensor " + in_quotes(name) + ": ";
  const std::uint64_t expected = metadata().get_uint(std::string(config_.type->family) + ".expert_count").value_or(0);
  if (parts.size() != expected || parts.rbegin()->first != static_cast<int>(parts.size()) - 1)
    fail(ErrorKind::format, where + "expected the " + std::to_string(expected) + " experts of config.json, folder has " +
                                std::to_string(parts.size()) + ", the last of them number " +
                                std::to_string(parts.rbegin()->first));
  Tensor joined = parts.begin()->second;
  const std::size_t size = joined.bytes.size();
  const auto bytes = new_bytes(size * parts.size());
  for (const auto& [expert, part] : parts) {
    if (part.type != joined.type || part.dims != joined.dims)
      fail(ErrorKind::format, where + "expected experts of one type and shape, expert " + std::to_string(expert) + " differs");
    std::memcpy(bytes.data() + size * static_cast<std::size_t>(expert), part.bytes.data(), size);
    drop(part.bytes);
  }
  if (joined.dims[2] != 1) fail(ErrorKind::format, where + "expected matrices, file has more dimensions");
  joined.dims[2] = parts.size();
  joined.num_dims = 3;
  joined.bytes = bytes;
  add_tensor(joined, name);
}

void HfFolder::add_factors() {
  for (const HfConfig::Factors& factors : config_.factors) {
    const auto bytes = new_bytes(factors.values.size() * sizeof(float));
    std::memcpy(bytes.data(), factors.values.data(), bytes.size());
    add_tensor({.name = {}, .type = TensorType::f32, .dims = {factors.values.size(), 1, 1, 1}, .num_dims = 1, .bytes = bytes},
               factors.name);
  }
}

void HfFolder::add_tensor(Tensor tensor, const std::string& name) {
  tensor.name = names_.emplace_back(name);
  tensors_.push_back(tensor);
}

std::span<std::byte> HfFolder::new_bytes(std::size_t size) {
  return {made_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(size)).get(), size};
}

void HfFolder::finish() {
  for (const auto& [name, parts] : experts_) join_experts(name, parts);
  experts_.clear();
  add_factors();
  index_ = NameIndex(tensors_, [](const Tensor& tensor) { return tensor.name; });
  if (const auto twice = index_.duplicate())
    fail(ErrorKind::format, "tensor " + in_quotes(*twice) + ": expected it once, folder has it under several names");
  if (!config_.tied && find("output.weight") == nullptr)
    fail(ErrorKind::format, "tensor \"lm_head.weight\": expected it, config.json doesn't tie it to the embeddings, folder has none");
}

const Tensor* HfFolder::find(std::string_view name) const {
  const auto position = index_.find(name);
  return position ? &tensors_[*position] : nullptr;
}

std::optional<std::vector<std::string_view>> HfFolder::get_strings(std::string_view key) const {
  metadata().refuse_array(key);
  return std::nullopt;
}
std::optional<std::vector<std::int64_t>> HfFolder::get_ints(std::string_view key) const {
  metadata().refuse_array(key);
  return std::nullopt;
}
std::optional<std::vector<float>> HfFolder::get_floats(std::string_view key) const {
  metadata().refuse_array(key);
  return std::nullopt;
}

// Advice is for the mappings alone: to drop what was made here would lose it.
bool HfFolder::is_mapped(std::span<const std::byte> bytes) const {
  return std::ranges::any_of(files_, [&](const MappedFile& file) {
    const auto whole = file.bytes();
    return std::less_equal<>()(whole.data(), bytes.data()) && std::less<>()(bytes.data(), whole.data() + whole.size());
  });
}
void HfFolder::read_ahead(std::span<const std::byte> bytes) const {
  if (is_mapped(bytes)) formats::read_ahead(bytes);
}
void HfFolder::drop(std::span<const std::byte> bytes) const {
  if (is_mapped(bytes)) formats::drop_pages(bytes);
}

}  // namespace couplet::formats
