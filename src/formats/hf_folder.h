#pragma once
// A Hugging Face folder as a checkpoint: config.json, generation_config.json, and the tensors of model.safetensors or of
// the shards that model.safetensors.index.json lists. Tensors point into the mapped files, but for the few that GGUF holds
// in another form (experts one behind the other, norms as 1 + w), which are made in memory.

#include <cstddef>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint_file.h"
#include "formats/hf_config.h"
#include "formats/hf_names.h"
#include "formats/json.h"
#include "formats/key_values.h"
#include "formats/mapped_file.h"
#include "formats/name_index.h"
#include "formats/safetensors.h"

namespace couplet::formats {

class HfFolder : public CheckpointFile {
 public:
  // A folder by path. One without weights (a tokenizer's alone) has no keys and no tensors.
  explicit HfFolder(const std::filesystem::path& folder);
  // config.json and model.safetensors in memory that outlives the object (tests, fuzzers).
  HfFolder(std::span<const std::byte> config, std::span<const std::byte> weights);

  std::optional<std::uint64_t> get_uint(std::string_view key) const override { return metadata().get_uint(key); }
  std::optional<double> get_float(std::string_view key) const override { return metadata().get_float(key); }
  std::optional<bool> get_bool(std::string_view key) const override { return metadata().get_bool(key); }
  std::optional<std::string_view> get_string(std::string_view key) const override { return metadata().get_string(key); }
  std::optional<std::vector<std::string_view>> get_strings(std::string_view key) const override;
  std::optional<std::vector<std::int64_t>> get_ints(std::string_view key) const override;
  std::optional<std::vector<float>> get_floats(std::string_view key) const override;
  std::vector<std::string_view> keys() const override { return metadata().keys(); }

  std::span<const Tensor> tensors() const override { return tensors_; }
  const Tensor* find(std::string_view name) const override;
  std::string_view format() const override { return "safetensors"; }
  std::uint64_t file_bytes() const override { return file_bytes_; }
  std::span<const FilePart> parts() const override { return parts_; }
  void read_ahead(std::span<const std::byte> bytes) const override;
  void drop(std::span<const std::byte> bytes) const override;

 private:
  // The parts of a tensor that GGUF holds as one, by expert.
  using ExpertParts = std::map<int, Tensor>;

  const KeyValues& metadata() const { return config_.metadata; }
  void add_shards(const std::filesystem::path& folder);
  void add_listed_shards(const std::filesystem::path& folder);
  void add_file(const std::filesystem::path& path, std::vector<SafeTensor>& into);
  void take(std::span<const SafeTensor> shard);
  void join_experts(const std::string& name, const ExpertParts& parts);
  void add_factors();
  void add_tensor(Tensor tensor, const std::string& name);
  std::span<std::byte> new_bytes(std::size_t size);
  void finish();
  bool is_mapped(std::span<const std::byte> bytes) const;

  HfConfig config_;
  std::vector<MappedFile> files_;  // of the parts; empty where the caller owns the bytes
  std::vector<FilePart> parts_;
  std::vector<Tensor> tensors_;
  std::map<std::string, ExpertParts> experts_;
  std::deque<std::string> names_;                    // the tensors'
  std::vector<std::unique_ptr<std::byte[]>> made_;  // what GGUF holds in another form
  NameIndex index_;
  std::uint64_t file_bytes_ = 0;
};

}  // namespace couplet::formats
