#pragma once
// Rows that a Hugging Face folder holds in another form than GGUF, made when they are read: nothing is copied at open, and
// what packs the weights needs room for a few rows alone.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "formats/checkpoint_file.h"
#include "formats/safetensors.h"

namespace couplet::formats {

// The experts' matrices one behind the other. All have the first one's type and shape.
class ExpertRows : public RowSource {
 public:
  explicit ExpertRows(std::vector<Tensor> experts) : experts_(std::move(experts)) {}
  void make_row(std::uint64_t row, std::byte* out) const override;

 private:
  std::vector<Tensor> experts_;
};

// Values of a plain type that lie apart in the file: value `k` of row `j` of expert `e` is number
// first + e * of_expert + j * of_row + k * of_value.
struct Strides {
  std::uint64_t first, of_expert, of_row, of_value;
};
class StridedRows : public RowSource {
 public:
  // `shape` is the made tensor's.
  StridedRows(std::span<const std::byte> bytes, const Tensor& shape, std::uint64_t rows_of_expert, const Strides& strides);
  void make_row(std::uint64_t row, std::byte* out) const override;

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t length_, value_bytes_, rows_of_expert_;
  Strides strides_;
};

// F32 rows of `of`, each value + 1.
class PlusOneRows : public RowSource {
 public:
  explicit PlusOneRows(const Tensor& of) : of_(of) {}
  void make_row(std::uint64_t row, std::byte* out) const override;

 private:
  Tensor of_;
};

// F32 rows of an F8 matrix: the float32 value of each code times its block's float32 scale, rounded once. A scale is for
// block_rows x block_cols values; there is none where the codes are the values.
struct F8Scales {
  std::vector<float> values;  // [rows of blocks, blocks_in_row]
  std::uint64_t block_rows = 1, block_cols = 1, blocks_in_row = 1;
};
class F8Rows : public RowSource {
 public:
  F8Rows(const SafeTensor& codes, F8Scales scales);
  void make_row(std::uint64_t row, std::byte* out) const override;

 private:
  std::span<const std::byte> codes_;
  std::uint64_t length_;
  F8Scales scales_;
  std::array<float, 256> values_;  // [code]
};

// MXFP4 rows of blocks as gpt-oss's checkpoints have them, scales apart and neighbours in a byte; rows lie apart as
// StridedRows' do, of_value aside.
class Mxfp4Rows : public RowSource {
 public:
  // 16 bytes a block, one scale a block; `shape` is the made tensor's.
  Mxfp4Rows(std::span<const std::byte> blocks, std::span<const std::byte> scales, const Tensor& shape, std::uint64_t rows_of_expert,
            const Strides& strides);
  void make_row(std::uint64_t row, std::byte* out) const override;

 private:
  std::span<const std::byte> blocks_, scales_;
  std::uint64_t blocks_in_row_, rows_of_expert_;
  Strides strides_;  // in rows
};

bool is_f8(std::string_view dtype);
// The float32 value of each code of F8_E4M3 (no infinities; S.1111.111 is NaN) or F8_E5M2.
std::array<float, 256> f8_values(std::string_view dtype);

}  // namespace couplet::formats
