#include "formats/quant_types.h"

#include <array>
#include <bit>
#include <cstring>

namespace couplet::formats {
namespace {

constexpr std::array<TensorTypeInfo, kNumTensorTypes> kTypes{{
    {"F32", 0, 1, 4},
    {"F16", 1, 1, 2},
    {"BF16", 30, 1, 2},
    {"Q4_0", 2, 32, 18},
    {"Q4_1", 3, 32, 20},
    {"Q5_0", 6, 32, 22},
    {"Q5_1", 7, 32, 24},
    {"Q8_0", 8, 32, 34},
    {"Q4_K", 12, 256, 144},
    {"Q5_K", 13, 256, 176},
    {"Q6_K", 14, 256, 210},
}};

// ggml's names by number; "" for numbers that were given up.
constexpr std::array<std::string_view, 42> kGgufNames{
    "F32",   "F16",    "Q4_0",  "Q4_1", "",     "",        "Q5_0",   "Q5_1",    "Q8_0",  "Q8_1",   "Q2_K",
    "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K", "Q8_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S",
    "IQ2_S", "IQ4_XS", "I8",    "I16",  "I32",  "I64",     "F64",    "IQ1_M",   "BF16",  "",       "",
    "",      "TQ1_0",  "TQ2_0", "",     "",     "",        "MXFP4",  "NVFP4",   "Q1_0"};

std::uint32_t byte_at(const std::byte* bytes, int index) {
  return std::to_integer<std::uint32_t>(bytes[index]);
}

template <class T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// IEEE half to float: exact, so also for subnormals; a NaN keeps its bits.
float half_at(const std::byte* bytes) {
  const std::uint32_t half = load<std::uint16_t>(bytes);
  const std::uint32_t sign = (half & 0x8000) << 16;
  const std::uint32_t exponent = half >> 10 & 31;
  const std::uint32_t fraction = half & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

// The 4-bit code `i` of 32: the low nibbles of 16 bytes come first, then the high ones.
std::uint32_t nibble(const std::byte* codes, int i) {
  return i < 16 ? byte_at(codes, i) & 15 : byte_at(codes, i - 16) >> 4;
}

void dequantize_q4_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int>(nibble(block + 2, i)) - 8);
}

void dequantize_q4_1(const std::byte* block, float* out) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(block + 4, i)) + m;
}

void dequantize_q5_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  const auto fifth_bits = load<std::uint32_t>(block + 2);
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t code = nibble(block + 6, i) | (fifth_bits >> i & 1) << 4;
    out[i] = d * static_cast<float>(static_cast<int>(code) - 16);
  }
}

void dequantize_q5_1(const std::byte* block, float* out) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  const auto fifth_bits = load<std::uint32_t>(block + 4);
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t code = nibble(block + 8, i) | (fifth_bits >> i & 1) << 4;
    out[i] = d * static_cast<float>(code) + m;
  }
}

void dequantize_q8_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(load<std::int8_t>(block + 2 + i)) * d;
}

// Scale and minimum of sub-block `i` of 8: 6 bits each in 12 bytes. The first four lie whole in bytes 0-3 and
// 4-7; of the last four, bytes 8-11 hold the low nibbles and the top bits of bytes 0-7 the rest.
struct ScaleAndMin {
  float scale, min;
};
ScaleAndMin scale_and_min(const std::byte* packed, int i) {
  if (i < 4) {
    return {static_cast<float>(byte_at(packed, i) & 63), static_cast<float>(byte_at(packed, i + 4) & 63)};
  }
  const std::uint32_t low = byte_at(packed, i + 4);
  return {static_cast<float>((low & 15) | (byte_at(packed, i - 4) >> 6 << 4)),
          static_cast<float>(low >> 4 | (byte_at(packed, i) >> 6 << 4))};
}

// Q4_K and Q5_K: 8 sub-blocks of 32. Two neighbours share 32 bytes of codes (low, then high nibbles); bit s
// of byte i of `fifth_bits` belongs to code i of sub-block s.
void dequantize_q4_k_or_q5_k(const std::byte* block, const std::byte* fifth_bits, const std::byte* codes,
                             float* out) {
  const float d = half_at(block);
  const float d_min = half_at(block + 2);
  for (int s = 0; s < 8; ++s) {
    const auto [scale, min] = scale_and_min(block + 4, s);
    const float dl = d * scale;
    const float ml = d_min * min;
    for (int i = 0; i < 32; ++i) {
      const std::uint32_t low = byte_at(codes, s / 2 * 32 + i) >> (s % 2 * 4) & 15;
      const std::uint32_t high = fifth_bits ? byte_at(fifth_bits, i) >> s & 1 : 0;
      out[s * 32 + i] = dl * static_cast<float>(low | high << 4) - ml;
    }
  }
}

void dequantize_q4_k(const std::byte* block, float* out) {
  dequantize_q4_k_or_q5_k(block, nullptr, block + 16, out);
}

void dequantize_q5_k(const std::byte* block, float* out) {
  dequantize_q4_k_or_q5_k(block, block + 16, block + 48, out);
}

// Two halves of 128 codes. In a half, group g of 32: its low nibbles lie in 64 bytes (groups 0 and 1 low, 2
// and 3 high), its upper two bits at position 2g of 32 bytes. A scale for every 16 codes.
void dequantize_q6_k(const std::byte* block, float* out) {
  const std::byte* scales = block + 192;
  const float d = half_at(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, group = i / 32 % 4, lane = i % 32;
    const std::uint32_t low = byte_at(block, half * 64 + group % 2 * 32 + lane) >> (group / 2 * 4) & 15;
    const std::uint32_t high = byte_at(block, 128 + half * 32 + lane) >> (group * 2) & 3;
    const float dl = d * static_cast<float>(load<std::int8_t>(scales + i / 16));
    out[i] = dl * static_cast<float>(static_cast<int>(low | high << 4) - 32);
  }
}

void dequantize_f32(const std::byte* block, float* out) { std::memcpy(out, block, sizeof(float)); }
void dequantize_f16(const std::byte* block, float* out) { *out = half_at(block); }
void dequantize_bf16(const std::byte* block, float* out) {
  const std::uint32_t bits = std::uint32_t{load<std::uint16_t>(block)} << 16;
  std::memcpy(out, &bits, sizeof(bits));
}

template <void (*block_to_floats)(const std::byte*, float*), TensorType type>
void dequantize_blocks(const std::byte* bytes, std::size_t count, float* out) {
  constexpr const TensorTypeInfo& kInfo = kTypes[static_cast<std::size_t>(type)];
  for (std::size_t i = 0; i < count / kInfo.block_values; ++i) {
    block_to_floats(bytes + i * kInfo.block_bytes, out + i * kInfo.block_values);
  }
}

}  // namespace

const TensorTypeInfo& info(TensorType type) { return kTypes[static_cast<std::size_t>(type)]; }

std::optional<TensorType> from_gguf_id(std::uint32_t id) {
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].gguf_id == id) return static_cast<TensorType>(i);
  }
  return std::nullopt;
}

std::string_view gguf_type_name(std::uint32_t id) { return id < kGgufNames.size() ? kGgufNames[id] : ""; }

void dequantize(TensorType type, const std::byte* bytes, std::size_t count, float* out) {
  switch (type) {
    case TensorType::f32:
      return dequantize_blocks<dequantize_f32, TensorType::f32>(bytes, count, out);
    case TensorType::f16:
      return dequantize_blocks<dequantize_f16, TensorType::f16>(bytes, count, out);
    case TensorType::bf16:
      return dequantize_blocks<dequantize_bf16, TensorType::bf16>(bytes, count, out);
    case TensorType::q4_0:
      return dequantize_blocks<dequantize_q4_0, TensorType::q4_0>(bytes, count, out);
    case TensorType::q4_1:
      return dequantize_blocks<dequantize_q4_1, TensorType::q4_1>(bytes, count, out);
    case TensorType::q5_0:
      return dequantize_blocks<dequantize_q5_0, TensorType::q5_0>(bytes, count, out);
    case TensorType::q5_1:
      return dequantize_blocks<dequantize_q5_1, TensorType::q5_1>(bytes, count, out);
    case TensorType::q8_0:
      return dequantize_blocks<dequantize_q8_0, TensorType::q8_0>(bytes, count, out);
    case TensorType::q4_k:
      return dequantize_blocks<dequantize_q4_k, TensorType::q4_k>(bytes, count, out);
    case TensorType::q5_k:
      return dequantize_blocks<dequantize_q5_k, TensorType::q5_k>(bytes, count, out);
    case TensorType::q6_k:
      return dequantize_blocks<dequantize_q6_k, TensorType::q6_k>(bytes, count, out);
  }
}

}  // namespace couplet::formats
