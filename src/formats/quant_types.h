#pragma once
// The tensor types that a checkpoint may hold, as bytes in the file: sizes, names and the float value of a
// row.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace couplet::formats {

enum class TensorType : std::uint8_t {
  f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k, q2_k, q3_k, iq4_nl, iq4_xs, mxfp4,
  iq1_s, iq1_m, iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s, tq1_0, tq2_0
};
inline constexpr int kNumTensorTypes = 25;

struct TensorTypeInfo {
  const char* name;            // "Q4_K", as the field writes it
  std::uint32_t gguf_id;       // ggml's number for it
  std::uint32_t block_values;  // values that share a block: a row's length is a multiple of it
  std::uint32_t block_bytes;
};

const TensorTypeInfo& info(TensorType type);
std::optional<TensorType> from_gguf_id(std::uint32_t id);
// The name of any ggml type, also of those not read here ("NVFP4"); "" if the number means nothing.
std::string_view gguf_type_name(std::uint32_t id);

// Values of `count` elements (a multiple of block_values) from file bytes; float32, each operation rounded
// once, equal to the bit to what PyPI `gguf` gives. `bytes` need not be aligned.
void dequantize(TensorType type, const std::byte* bytes, std::size_t count, float* out);

}  // namespace couplet::formats
