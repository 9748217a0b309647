#pragma once
// A checkpoint whose float matrices are handed out quantized, as the rules of a mix say: a row is quantized when it is asked
// for, into the blocks that a file written with the same mix holds. What is quantized already stays as it is.

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "formats/checkpoint_file.h"
#include "formats/quantize_mix.h"

namespace couplet::formats {

class QuantizedFile : public CheckpointFile {
 public:
  // Throws Error{usage} where nothing would change.
  QuantizedFile(std::unique_ptr<CheckpointFile> source, const Mix& mix);

  std::optional<std::uint64_t> get_uint(std::string_view key) const override { return source_->get_uint(key); }
  std::optional<double> get_float(std::string_view key) const override { return source_->get_float(key); }
  std::optional<bool> get_bool(std::string_view key) const override { return source_->get_bool(key); }
  std::optional<std::string_view> get_string(std::string_view key) const override { return source_->get_string(key); }
  std::optional<std::vector<std::string_view>> get_strings(std::string_view key) const override { return source_->get_strings(key); }
  std::optional<std::vector<std::int64_t>> get_ints(std::string_view key) const override { return source_->get_ints(key); }
  std::optional<std::vector<float>> get_floats(std::string_view key) const override { return source_->get_floats(key); }
  std::vector<std::string_view> keys() const override { return source_->keys(); }

  std::span<const Tensor> tensors() const override { return tensors_; }
  const Tensor* find(std::string_view name) const override;

  std::string lacks_weights() const override { return source_->lacks_weights(); }
  std::string_view quantized_as() const override { return mix_->name; }
  void refuse_spoiled_rows() const override;
  std::string_view format() const override { return source_->format(); }
  std::uint64_t file_bytes() const override { return source_->file_bytes(); }
  std::span<const FilePart> parts() const override { return source_->parts(); }
  void read_ahead(std::span<const std::byte> bytes) const override { source_->read_ahead(bytes); }
  void drop(std::span<const std::byte> bytes) const override { source_->drop(bytes); }

 private:
  class Rows : public RowSource {
   public:
    Rows(const Tensor& source, TensorType type) : source_(source), type_(type) {}
    void make_row(std::uint64_t row, std::byte* out) const override;
    bool is_spoiled() const { return is_spoiled_.load(std::memory_order_relaxed); }

   private:
    Tensor source_;
    TensorType type_;
    mutable std::atomic<bool> is_spoiled_{false};  // a value was no number that the type holds
  };

  std::unique_ptr<CheckpointFile> source_;
  const Mix* mix_;
  std::vector<Tensor> tensors_;  // in the source's order
  std::deque<Rows> rows_;
};

}  // namespace couplet::formats
