#include "formats/quant_types.h"

#include <array>

#include "formats/block_bytes.h"
#include "formats/coded_blocks.h"

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
    {"Q2_K", 10, 256, 84},
    {"Q3_K", 11, 256, 110},
    {"IQ4_NL", 20, 32, 18},
    {"IQ4_XS", 23, 256, 136},
    {"MXFP4", 39, 32, 17},
    {"IQ1_S", 19, 256, 50},
    {"IQ1_M", 29, 256, 56},
    {"IQ2_XXS", 16, 256, 66},
    {"IQ2_XS", 17, 256, 74},
    {"IQ2_S", 22, 256, 82},
    {"IQ3_XXS", 18, 256, 98},
    {"IQ3_S", 21, 256, 110},
    {"TQ1_0", 34, 256, 54},
    {"TQ2_0", 35, 256, 66},
}};

// ggml's names by number; "" for numbers that were given up.
constexpr std::array<std::string_view, 42> kGgufNames{
    "F32",   "F16",    "Q4_0",  "Q4_1", "",     "",        "Q5_0",   "Q5_1",    "Q8_0",  "Q8_1",   "Q2_K",
    "Q3_K",  "Q4_K",   "Q5_K",  "Q6_K", "Q8_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S",
    "IQ2_S", "IQ4_XS", "I8",    "I16",  "I32",  "I64",     "F64",    "IQ1_M",   "BF16",  "",       "",
    "",      "TQ1_0",  "TQ2_0", "",     "",     "",        "MXFP4",  "NVFP4",   "Q1_0"};

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

// The 2-bit codes of Q2_K and Q3_K: 32 bytes for each half of 128 values, the lowest bits of all of them first.
std::uint32_t two_bits(const std::byte* codes, int i) {
  return byte_at(codes, i / 128 * 32 + i % 32) >> (i / 32 % 4 * 2) & 3;
}

// A scale (low nibble) and a minimum (high) for every 16 codes.
void dequantize_q2_k(const std::byte* block, float* out) {
  const float d = half_at(block + 80);
  const float d_min = half_at(block + 82);
  for (int i = 0; i < 256; ++i) {
    const std::uint32_t packed = byte_at(block, i / 16);
    const float dl = d * static_cast<float>(packed & 15);
    const float ml = d_min * static_cast<float>(packed >> 4);
    out[i] = dl * static_cast<float>(two_bits(block + 16, i)) - ml;
  }
}

// Bit s of byte i of the first 32 is the third bit of code i of 32 codes s. Of the 16 scales' six bits, the low four lie in
// eight bytes (scales 0-7 low, 8-15 high), the others in four: bits 2j, 2j + 1 of byte s % 4 for scale s = 4j + s % 4.
void dequantize_q3_k(const std::byte* block, float* out) {
  const float d = half_at(block + 108);
  for (int i = 0; i < 256; ++i) {
    const int s = i / 16;
    const std::uint32_t low = byte_at(block, 96 + s % 8) >> (s / 8 * 4) & 15;
    const std::uint32_t high = byte_at(block, 104 + s % 4) >> (s / 4 * 2) & 3;
    const float dl = d * static_cast<float>(static_cast<int>(low | high << 4) - 32);
    const std::uint32_t third = byte_at(block, i % 32) >> (i / 32) & 1;
    out[i] = dl * static_cast<float>(static_cast<int>(two_bits(block + 32, i) | third << 2) - 4);
  }
}

constexpr float kIq4Codes[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void dequantize_iq4_nl(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) out[i] = d * kIq4Codes[nibble(block + 2, i)];
}

// [d] [8 x 2 high bits of scales] [8 low nibbles of scales] [8 x 16 bytes of codes].
void dequantize_iq4_xs(const std::byte* block, float* out) {
  const float d = half_at(block);
  const std::uint32_t high_bits = load<std::uint16_t>(block + 2);
  for (int s = 0; s < 8; ++s) {
    const std::uint32_t low = byte_at(block, 4 + s / 2) >> (s % 2 * 4) & 15;
    const std::uint32_t high = high_bits >> (2 * s) & 3;
    const float dl = d * static_cast<float>(static_cast<int>(low | high << 4) - 32);
    for (int i = 0; i < 32; ++i) out[s * 32 + i] = dl * kIq4Codes[nibble(block + 8 + 16 * s, i)];
  }
}

// Codes are doubled, and so the scale is 2^(e - 128), which is subnormal for the two smallest e.
void dequantize_mxfp4(const std::byte* block, float* out) {
  constexpr float kCodes[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const std::uint32_t e = byte_at(block, 0);
  const auto d = std::bit_cast<float>(e < 2 ? 0x00200000U << e : (e - 1) << 23);
  for (int i = 0; i < 32; ++i) out[i] = d * kCodes[nibble(block + 1, i)];
}

template <TensorType type>
void dequantize_coded(const std::byte* block, float* out) {
  CodedBlock coded;
  to_coded_blocks(type, block, kCodedValues, &coded);
  dequantize(coded, out);
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
  using enum TensorType;
  switch (type) {
    case f32: return dequantize_blocks<dequantize_f32, f32>(bytes, count, out);
    case f16: return dequantize_blocks<dequantize_f16, f16>(bytes, count, out);
    case bf16: return dequantize_blocks<dequantize_bf16, bf16>(bytes, count, out);
    case q4_0: return dequantize_blocks<dequantize_q4_0, q4_0>(bytes, count, out);
    case q4_1: return dequantize_blocks<dequantize_q4_1, q4_1>(bytes, count, out);
    case q5_0: return dequantize_blocks<dequantize_q5_0, q5_0>(bytes, count, out);
    case q5_1: return dequantize_blocks<dequantize_q5_1, q5_1>(bytes, count, out);
    case q8_0: return dequantize_blocks<dequantize_q8_0, q8_0>(bytes, count, out);
    case q4_k: return dequantize_blocks<dequantize_q4_k, q4_k>(bytes, count, out);
    case q5_k: return dequantize_blocks<dequantize_q5_k, q5_k>(bytes, count, out);
    case q6_k: return dequantize_blocks<dequantize_q6_k, q6_k>(bytes, count, out);
    case q2_k: return dequantize_blocks<dequantize_q2_k, q2_k>(bytes, count, out);
    case q3_k: return dequantize_blocks<dequantize_q3_k, q3_k>(bytes, count, out);
    case iq4_nl: return dequantize_blocks<dequantize_iq4_nl, iq4_nl>(bytes, count, out);
    case iq4_xs: return dequantize_blocks<dequantize_iq4_xs, iq4_xs>(bytes, count, out);
    case mxfp4: return dequantize_blocks<dequantize_mxfp4, mxfp4>(bytes, count, out);
    case iq1_s: return dequantize_blocks<dequantize_coded<iq1_s>, iq1_s>(bytes, count, out);
    case iq1_m: return dequantize_blocks<dequantize_coded<iq1_m>, iq1_m>(bytes, count, out);
    case iq2_xxs: return dequantize_blocks<dequantize_coded<iq2_xxs>, iq2_xxs>(bytes, count, out);
    case iq2_xs: return dequantize_blocks<dequantize_coded<iq2_xs>, iq2_xs>(bytes, count, out);
    case iq2_s: return dequantize_blocks<dequantize_coded<iq2_s>, iq2_s>(bytes, count, out);
    case iq3_xxs: return dequantize_blocks<dequantize_coded<iq3_xxs>, iq3_xxs>(bytes, count, out);
    case iq3_s: return dequantize_blocks<dequantize_coded<iq3_s>, iq3_s>(bytes, count, out);
    case tq1_0: return dequantize_blocks<dequantize_coded<tq1_0>, tq1_0>(bytes, count, out);
    case tq2_0: return dequantize_blocks<dequantize_coded<tq2_0>, tq2_0>(bytes, count, out);
  }
}

}  // namespace couplet::formats
