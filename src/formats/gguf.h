#pragma once
// A GGUF checkpoint: the parts of one model (mostly one) joined into one table of tensors. The mapped files
// live as long as the object, and all names, strings and tensor bytes that it hands out point into them.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "formats/checkpoint_file.h"
#include "formats/gguf_part.h"
#include "formats/mapped_file.h"
#include "formats/name_index.h"

namespace couplet::formats {

// Whether GGUF's files of a family interleave the two halves of each head in this tensor (RopeOrder::pairs).
bool holds_pairs(std::string_view architecture, std::string_view tensor);

class GgufFile : public CheckpointFile {
 public:
  // A file by path, with all its parts; or the bytes of a whole one, owned by the caller.
  explicit GgufFile(const std::filesystem::path& path);
  explicit GgufFile(std::span<const std::byte> bytes);

  std::optional<std::uint64_t> get_uint(std::string_view key) const override {
    return metadata_.get_uint(key);
  }
  std::optional<double> get_float(std::string_view key) const override { return metadata_.get_float(key); }
  std::optional<bool> get_bool(std::string_view key) const override { return metadata_.get_bool(key); }
  std::optional<std::string_view> get_string(std::string_view key) const override {
    return metadata_.get_string(key);
  }
  std::optional<std::vector<std::string_view>> get_strings(std::string_view key) const override {
    return metadata_.get_strings(key);
  }
  std::optional<std::vector<std::int64_t>> get_ints(std::string_view key) const override {
    return metadata_.get_ints(key);
  }
  std::optional<std::vector<float>> get_floats(std::string_view key) const override {
    return metadata_.get_floats(key);
  }
  std::vector<std::string_view> keys() const override { return metadata_.keys(); }

  // All of it, as the file has it.
  const GgufMetadata& metadata() const { return metadata_; }

  std::span<const Tensor> tensors() const override { return tensors_; }
  const Tensor* find(std::string_view name) const override;
  std::string_view format() const override { return version_ == 2 ? "GGUF v2" : "GGUF v3"; }
  std::uint64_t file_bytes() const override { return file_bytes_; }
  std::span<const FilePart> parts() const override { return parts_; }
  void read_ahead(std::span<const std::byte> bytes) const override;
  void drop(std::span<const std::byte> bytes) const override;

 private:
  void add_file(MappedFile file, GgufPart part);
  void add_part(GgufPart part);
  void join_parts(const std::filesystem::path& path, std::uint64_t num_parts);
  void finish();

  std::vector<MappedFile> files_;                 // empty where the caller owns the bytes
  std::vector<FilePart> parts_;                   // of those files
  GgufMetadata metadata_;                         // the first part's, which is the whole model's
  std::vector<Tensor> tensors_;
  NameIndex index_;
  std::uint32_t version_ = 0;
  std::uint64_t file_bytes_ = 0;
};

}  // namespace couplet::formats
