// Rule 4. A panel is unpacked to sub-blocks of plain numbers, straight from the table in packed.h; then every row runs
// one chain of fused multiply-adds an output, sub-blocks ascending.

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/packed.h"
#include "kernels/packed_format.h"
#include "kernels/reference/half.h"
#include "kernels/reference/product_kernels.h"
#include "kernels/scaled_sum.h"

namespace couplet::kernels::reference {
namespace {

// Codes of 16 outputs that share a scale each: value = dw * code + mw * (1, where the type has a minimum).
struct SubBlock {
  float dw[kPanelRows];
  float mw[kPanelRows];
  std::int8_t codes[kPanelRows][32];  // the offset is taken off; the first sub_block_values() count
};

constexpr int sub_block_values(WeightType type) {
  using enum WeightType;
  return is_one_of(type, q6_k, q2_k, q3_k, coded) ? 16 : 32;
}

constexpr bool has_minimum(WeightType type) {
  using enum WeightType;
  return is_one_of(type, q4_1, q5_1, q4_k, q5_k, q2_k);
}

int byte_at(const std::byte* p) { return static_cast<int>(*p); }

float half_at(const std::byte* p) {
  std::uint16_t half;
  std::memcpy(&half, p, sizeof half);
  return half_to_float(half);
}

// packed.h: lane (r, t) of vector j; the low nibble is k = 4j + t, the high one 16 + 4j + t.
int nibble(const std::byte* vectors, int r, int k) {
  const int j = k % 16 / 4, t = k % 4;
  return byte_at(vectors + 64 * j + 4 * r + t) >> (k < 16 ? 0 : 4) & 15;
}

int fifth_bit(const std::byte* vector, int r, int k) { return byte_at(vector + 4 * r + k % 4) >> (k / 4) & 1; }

int two_bits(const std::byte* vectors, int r, int k) {  // Q6_K's high ones, Q2_K, Q3_K
  return byte_at(vectors + 64 * (k / 16) + 4 * r + k % 4) >> (2 * (k % 16 / 4)) & 3;
}

void unpack_simple(WeightType type, const std::byte* block, SubBlock& out) {
  const bool minimum = has_minimum(type), fifth = type == WeightType::q5_0 || type == WeightType::q5_1;
  const int offset = minimum ? 0 : fifth ? 16 : 8;
  const std::byte* codes = block + (minimum ? 64 : 32);
  for (int r = 0; r < kPanelRows; ++r) {
    out.dw[r] = half_at(block + 2 * r);
    out.mw[r] = minimum ? half_at(block + 32 + 2 * r) : 0.0f;
    for (int k = 0; k < 32; ++k) {
      const int high = fifth ? fifth_bit(codes + 256, r, k) << 4 : 0;
      out.codes[r][k] = static_cast<std::int8_t>((nibble(codes, r, k) | high) - offset);
    }
  }
}

void unpack_q8_0(const std::byte* block, SubBlock& out) {
  for (int r = 0; r < kPanelRows; ++r) {
    out.dw[r] = half_at(block + 2 * r);
    out.mw[r] = 0;
    for (int k = 0; k < 32; ++k) out.codes[r][k] = static_cast<std::int8_t>(block[32 + 64 * (k / 4) + 4 * r + k % 4]);
  }
}

void unpack_q45_k(WeightType type, const std::byte* block, SubBlock* out) {
  const bool fifth = type == WeightType::q5_k;
  const std::byte* scales = block + 64;
  const std::byte* codes = scales + 12 * 16;
  for (int s = 0; s < 8; ++s, codes += fifth ? 320 : 256) {
    for (int r = 0; r < kPanelRows; ++r) {
      const int packed = byte_at(scales + 16 * s + r), low = byte_at(scales + 16 * (8 + s / 2) + r);
      const int sc = packed & 63, m = (packed >> 6) << 4 | (low >> (4 * (s % 2)) & 15);
      out[s].dw[r] = half_at(block + 2 * r) * static_cast<float>(sc);
      out[s].mw[r] = -(half_at(block + 32 + 2 * r) * static_cast<float>(m));
      for (int k = 0; k < 32; ++k) {
        const int high = fifth ? fifth_bit(codes + 256, r, k) << 4 : 0;
        out[s].codes[r][k] = static_cast<std::int8_t>(nibble(codes, r, k) | high);
      }
    }
  }
}

void unpack_q6_k(const std::byte* block, SubBlock* out) {
  for (int s = 0; s < 16; ++s) {
    const std::byte* part = block + 32 + 16 * 16 + 384 * (s / 2);
    for (int r = 0; r < kPanelRows; ++r) {
      const auto sc = static_cast<std::int8_t>(block[32 + 16 * s + r]);
      out[s].dw[r] = half_at(block + 2 * r) * static_cast<float>(sc);
      out[s].mw[r] = 0;
      for (int i = 0; i < 16; ++i) {
        const int k = 16 * (s % 2) + i;
        out[s].codes[r][i] = static_cast<std::int8_t>((nibble(part, r, k) | two_bits(part + 256, r, k) << 4) - 32);
      }
    }
  }
}

void unpack_q2_k(const std::byte* block, SubBlock* out) {
  for (int s = 0; s < 16; ++s) {
    const std::byte* part = block + 64 + 16 * 16 + 128 * (s / 2);
    for (int r = 0; r < kPanelRows; ++r) {
      const int packed = byte_at(block + 64 + 16 * s + r);
      out[s].dw[r] = half_at(block + 2 * r) * static_cast<float>(packed & 15);
      out[s].mw[r] = -(half_at(block + 32 + 2 * r) * static_cast<float>(packed >> 4));
      for (int i = 0; i < 16; ++i) out[s].codes[r][i] = static_cast<std::int8_t>(two_bits(part, r, 16 * (s % 2) + i));
    }
  }
}

void unpack_q3_k(const std::byte* block, SubBlock* out) {
  for (int s = 0; s < 16; ++s) {
    const std::byte* part = block + 32 + 16 * 16 + 192 * (s / 2);
    for (int r = 0; r < kPanelRows; ++r) {
      const auto sc = static_cast<std::int8_t>(block[32 + 16 * s + r]);
      out[s].dw[r] = half_at(block + 2 * r) * static_cast<float>(sc);
      out[s].mw[r] = 0;
      for (int i = 0; i < 16; ++i) {
        const int k = 16 * (s % 2) + i;
        out[s].codes[r][i] = static_cast<std::int8_t>((two_bits(part, r, k) | fifth_bit(part + 128, r, k) << 2) - 4);
      }
    }
  }
}

// A sub-block's codes, which nibbles of `part` from value `first` on stand for.
void look_up(const std::int8_t* list, const std::byte* part, int first, int count, int r, SubBlock& out) {
  out.mw[r] = 0;
  for (int i = 0; i < count; ++i) out.codes[r][i] = list[nibble(part, r, first + i)];
}

void unpack_iq4_nl(const std::byte* block, SubBlock& out) {
  for (int r = 0; r < kPanelRows; ++r) {
    out.dw[r] = half_at(block + 2 * r);
    look_up(kIq4Codes, block + 32, 0, 32, r, out);
  }
}

void unpack_iq4_xs(const std::byte* block, SubBlock* out) {
  for (int s = 0; s < 8; ++s) {
    for (int r = 0; r < kPanelRows; ++r) {
      const auto sc = static_cast<std::int8_t>(block[32 + 16 * s + r]);
      out[s].dw[r] = half_at(block + 2 * r) * static_cast<float>(sc);
      look_up(kIq4Codes, block + 32 + 8 * 16 + 256 * s, 0, 32, r, out[s]);
    }
  }
}

void unpack_mxfp4(const std::byte* block, SubBlock& out) {
  for (int r = 0; r < kPanelRows; ++r) {
    out.dw[r] = std::ldexp(1.0f, byte_at(block + r) - 128);
    look_up(kMxfp4Codes, block + 16, 0, 32, r, out);
  }
}

void unpack_coded(const std::byte* block, SubBlock* out) {
  const std::byte* list = block + 64 + 16 * 16;
  std::int8_t codes[16];
  std::memcpy(codes, list, sizeof codes);
  for (int s = 0; s < 16; ++s) {
    for (int r = 0; r < kPanelRows; ++r) {
      float d;
      std::memcpy(&d, block + 4 * r, sizeof d);
      out[s].dw[r] = d * static_cast<float>(static_cast<std::int8_t>(block[64 + 16 * s + r]));
      look_up(codes, list + 16 + 256 * (s / 2), 16 * (s % 2), 16, r, out[s]);
    }
  }
}

void unpack_block(WeightType type, const std::byte* block, SubBlock* out) {
  switch (type) {
    case WeightType::q8_0: return unpack_q8_0(block, *out);
    case WeightType::q4_k:
    case WeightType::q5_k: return unpack_q45_k(type, block, out);
    case WeightType::q6_k: return unpack_q6_k(block, out);
    case WeightType::q2_k: return unpack_q2_k(block, out);
    case WeightType::q3_k: return unpack_q3_k(block, out);
    case WeightType::iq4_nl: return unpack_iq4_nl(block, *out);
    case WeightType::iq4_xs: return unpack_iq4_xs(block, out);
    case WeightType::mxfp4: return unpack_mxfp4(block, *out);
    case WeightType::coded: return unpack_coded(block, out);
    default: return unpack_simple(type, block, *out);
  }
}

void unpack_panel(WeightType type, const std::byte* panel, int cols, SubBlock* out) {
  const int values = block_values(type);
  const std::size_t bytes = row_bytes(type, values) * kPanelRows;
  for (int k = 0; k < cols; k += values, panel += bytes, out += values / sub_block_values(type))
    unpack_block(type, panel, out);
}

std::int32_t dot(const std::int8_t* w, const std::int8_t* x, int count) {
  std::int32_t sum = 0;
  for (int k = 0; k < count; ++k) sum += w[k] * x[k];
  return sum;
}

// acc[r] runs over sub-blocks [begin, end) of one activation row.
void chain(WeightType type, const SubBlock* blocks, int begin, int end, const QuantizedRows& x, std::ptrdiff_t row,
           float acc[kPanelRows]) {
  const int values = sub_block_values(type);
  for (int s = begin; s < end; ++s) {
    const std::ptrdiff_t at = row * x.code_stride + static_cast<std::ptrdiff_t>(s) * values;
    const std::ptrdiff_t block = row * (x.cols / kActivationBlock) + s * values / kActivationBlock;
    const float sa = values == 16 ? scaled_sum_of_16(x, block, s % 2) : x.scaled_sum[block];
    for (int r = 0; r < kPanelRows; ++r) {
      const std::int8_t* codes = blocks[s].codes[r];
      float f = static_cast<float>(dot(codes, x.hi + at, values));
      if (x.lo) f = std::fma(254.0f, f, static_cast<float>(dot(codes, x.lo + at, values)));
      acc[r] = std::fma(f * blocks[s].dw[r], x.scale[block], acc[r]);
      if (has_minimum(type)) acc[r] = std::fma(blocks[s].mw[r], sa, acc[r]);
    }
  }
}

// With more than one part, K is split and the parts are added: against the contract, for the tests of the tests.
void product_in_parts(int parts, const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x,
                      float* out, int out_stride, std::byte* scratch) {
  auto* blocks = reinterpret_cast<SubBlock*>(scratch);
  const int num_blocks = weights.cols / sub_block_values(weights.type);
  for (std::ptrdiff_t p = first_panel; p < first_panel + num_panels; ++p) {
    unpack_panel(weights.type, weights.panels + static_cast<std::size_t>(p) * weights.panel_bytes, weights.cols, blocks);
    for (std::ptrdiff_t row = 0; row < x.num_rows; ++row) {
      float* result = out + row * out_stride + p * kPanelRows;
      for (int part = 0; part < parts; ++part) {
        float acc[kPanelRows] = {};
        chain(weights.type, blocks, num_blocks * part / parts, num_blocks * (part + 1) / parts, x, row, acc);
        for (int r = 0; r < kPanelRows; ++r) result[r] = part == 0 ? acc[r] : result[r] + acc[r];
      }
    }
  }
}

}  // namespace

void one_row(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
             int out_stride, std::byte* scratch) {
  product_in_parts(1, weights, first_panel, num_panels, x, out, out_stride, scratch);
}

void many_rows(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
               int out_stride, std::byte* scratch) {
#ifdef COUPLET_SPLIT_K
  constexpr int kParts = 2;
#else
  constexpr int kParts = 1;
#endif
  product_in_parts(kParts, weights, first_panel, num_panels, x, out, out_stride, scratch);
}

std::size_t product_scratch_bytes(int max_cols) {
  return static_cast<std::size_t>((max_cols + 15) / 16) * sizeof(SubBlock);
}

}  // namespace couplet::kernels::reference
