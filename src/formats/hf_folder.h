#pragma once
// A Hugging Face folder as a checkpoint: config.json, generation_config.json, the tokenizer's files, and the tensors of
// model.safetensors or of the shards that model.safetensors.index.json lists. Nobody behind CheckpointFile sees that it is
// no GGUF file.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint_file.h"
#include "formats/hf_config.h"
#include "formats/hf_tensors.h"
#include "formats/hf_tokenizer.h"
#include "formats/mapped_file.h"
#include "formats/safetensors.h"

namespace couplet::formats {

class HfFolder : public CheckpointFile {
 public:
  // A folder by path. One with a tokenizer and without weights has the tokenizer's keys alone.
  explicit HfFolder(const std::filesystem::path& folder);
  // config.json and model.safetensors in memory that outlives the object (tests, fuzzers).
  HfFolder(std::span<const std::byte> config, std::span<const std::byte> weights);

  std::optional<std::uint64_t> get_uint(std::string_view key) const override { return metadata().get_uint(key); }
  std::optional<double> get_float(std::string_view key) const override { return metadata().get_float(key); }
  std::optional<bool> get_bool(std::string_view key) const override { return metadata().get_bool(key); }
  std::optional<std::string_view> get_string(std::string_view key) const override { return metadata().get_string(key); }
  std::optional<std::vector<std::string_view>> get_strings(std::string_view key) const override;
  std::optional<std::vector<std::int64_t>> get_ints(std::string_view key) const override { return metadata().get_ints(key); }
  std::optional<std::vector<float>> get_floats(std::string_view key) const override;
  std::vector<std::string_view> keys() const override { return metadata().keys(); }

  const KeyValues& metadata() const { return config_.metadata; }

  std::span<const Tensor> tensors() const override { return tensors_.all(); }
  const Tensor* find(std::string_view name) const override { return tensors_.find(name); }
  std::string lacks_weights() const override { return lacks_weights_; }
  std::string_view format() const override { return lacks_weights_.empty() ? "safetensors" : "tokenizer files"; }
  std::uint64_t file_bytes() const override { return file_bytes_; }
  std::span<const FilePart> parts() const override { return parts_; }
  void read_ahead(std::span<const std::byte> bytes) const override;
  void drop(std::span<const std::byte> bytes) const override;

 private:
  void read_config();
  std::vector<SafeTensor> open_shards();
  std::vector<SafeTensor> open_listed_shards();
  std::vector<SafeTensor> open_file(const std::filesystem::path& path);
  bool is_mapped(std::span<const std::byte> bytes) const;

  FolderFiles files_;
  HfConfig config_;
  std::vector<MappedFile> shards_;
  std::vector<FilePart> parts_;  // the shards and config.json; none where the caller owns the bytes
  HfTensors tensors_;
  std::string lacks_weights_;
  std::uint64_t file_bytes_ = 0;
};

}  // namespace couplet::formats
