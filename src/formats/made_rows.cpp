#include "formats/made_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace couplet::formats {

void ExpertRows::make_row(std::uint64_t row, std::byte* out) const {
  const std::uint64_t rows = experts_[0].num_rows();
  const Tensor& expert = experts_[row / rows];
  const std::byte* from = expert.row(row % rows, out);
  if (from != out) std::memcpy(out, from, expert.row_bytes());
}

StridedRows::StridedRows(std::span<const std::byte> bytes, const Tensor& shape, std::uint64_t rows_of_expert,
                         const Strides& strides)
    : bytes_(bytes),
      length_(shape.row_length()),
      value_bytes_(info(shape.type).block_bytes),
      rows_of_expert_(rows_of_expert),
      strides_(strides) {}

void StridedRows::make_row(std::uint64_t row, std::byte* out) const {
  const std::uint64_t begin =
      strides_.first + row / rows_of_expert_ * strides_.of_expert + row % rows_of_expert_ * strides_.of_row;
  for (std::uint64_t k = 0; k < length_; ++k)
    std::memcpy(out + k * value_bytes_, bytes_.data() + (begin + k * strides_.of_value) * value_bytes_, value_bytes_);
}

void PlusOneRows::make_row(std::uint64_t row, std::byte* out) const {
  std::vector<std::byte> made(of_.row_bytes());
  std::vector<float> values(of_.row_length());
  dequantize(of_.type, of_.row(row, made.data()), values.size(), values.data());
  for (float& value : values) value += 1.0F;
  std::memcpy(out, values.data(), values.size() * sizeof(float));
}

F8Rows::F8Rows(const SafeTensor& codes, F8Scales scales)
    : codes_(codes.bytes), length_(codes.shape.back()), scales_(std::move(scales)), values_(f8_values(codes.dtype)) {}

void F8Rows::make_row(std::uint64_t row, std::byte* out) const {
  const std::byte* codes = codes_.data() + row * length_;
  const float* scales =
      scales_.values.empty() ? nullptr : scales_.values.data() + row / scales_.block_rows * scales_.blocks_in_row;
  for (std::uint64_t k = 0; k < length_; ++k) {
    float value = values_[std::to_integer<std::size_t>(codes[k])];
    if (scales != nullptr) value *= scales[k / scales_.block_cols];
    std::memcpy(out + k * sizeof value, &value, sizeof value);
  }
}

Mxfp4Rows::Mxfp4Rows(std::span<const std::byte> blocks, std::span<const std::byte> scales, const Tensor& shape,
                     std::uint64_t rows_of_expert, const Strides& strides)
    : blocks_(blocks),
      scales_(scales),
      blocks_in_row_(shape.row_length() / info(shape.type).block_values),
      rows_of_expert_(rows_of_expert),
      strides_(strides) {}

// GGUF's block is the scale, then bytes whose low halves are codes 0 to 15 and whose high ones are codes 16 to 31.
void Mxfp4Rows::make_row(std::uint64_t row, std::byte* out) const {
  constexpr std::uint64_t kBytes = 16;
  const std::uint64_t in_file =
      strides_.first + row / rows_of_expert_ * strides_.of_expert + row % rows_of_expert_ * strides_.of_row;
  const std::byte* scales = scales_.data() + in_file * blocks_in_row_;
  const std::byte* codes = blocks_.data() + in_file * blocks_in_row_ * kBytes;
  for (std::uint64_t block = 0; block < blocks_in_row_; ++block, codes += kBytes) {
    const auto code = [&](std::uint64_t i) { return codes[i / 2] >> (i % 2 == 0 ? 0 : 4) & std::byte{15}; };
    *out++ = scales[block];
    for (std::uint64_t i = 0; i < kBytes; ++i) *out++ = code(i) | code(i + kBytes) << 4;
  }
}

bool is_f8(std::string_view dtype) { return dtype == "F8_E4M3" || dtype == "F8_E5M2"; }

std::array<float, 256> f8_values(std::string_view dtype) {
  const bool e4m3 = dtype == "F8_E4M3";
  const unsigned fraction_bits = e4m3 ? 3 : 2;
  const int bias = e4m3 ? 7 : 15;
  std::array<float, 256> values{};
  for (unsigned code = 0; code < 256; ++code) {
    const unsigned magnitude = code & 0x7F, fraction = magnitude & ((1U << fraction_bits) - 1);
    const int exponent = static_cast<int>(magnitude >> fraction_bits);
    const bool normal = exponent > 0;
    float value = std::ldexp(static_cast<float>(fraction + (normal ? 1U << fraction_bits : 0U)),
                             std::max(exponent, 1) - bias - static_cast<int>(fraction_bits));
    if (e4m3 ? magnitude == 0x7F : magnitude > 0x7C) value = std::numeric_limits<float>::quiet_NaN();
    if (!e4m3 && magnitude == 0x7C) value = std::numeric_limits<float>::infinity();
    values[code] = std::copysign(value, code < 0x80 ? 1.0F : -1.0F);
  }
  return values;
}

}  // namespace couplet::formats
