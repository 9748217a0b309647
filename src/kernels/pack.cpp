// File rows -> panels (packed.h), four codes (one 32-bit word) at a time: a word of codes of one file row becomes a
// word of a packed vector, so a panel is a transpose of words with, for some types, a regrouping of nibbles and bits.

#include <cstdint>
#include <cstring>

#include "kernels/packed.h"

namespace couplet::kernels {
namespace {

struct Block {
  int values;  // of one row
  int bytes;
};

constexpr Block kBlocks[kNumWeightTypes] = {
    {1, 4},    {1, 2},    {1, 2},                         // f32, f16, bf16
    {32, 18},  {32, 20},  {32, 22}, {32, 24}, {32, 34},   // q4_0, q4_1, q5_0, q5_1, q8_0
    {256, 144}, {256, 176}, {256, 210},                   // q4_k, q5_k, q6_k
};

constexpr Block block_of(WeightType type) { return kBlocks[static_cast<int>(type)]; }

std::uint32_t word_at(const std::byte* p) {
  std::uint32_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

unsigned byte_at(const std::byte* p) { return static_cast<unsigned>(*p); }

// One row's share of one block's packed bytes.
class RowOfBlock {
 public:
  RowOfBlock(std::byte* block, int row) : block_(block), row_(row) {}

  void half(int offset, const std::byte* source) { std::memcpy(block_ + offset + 2 * row_, source, 2); }
  void byte(int offset, unsigned value) { block_[offset + row_] = static_cast<std::byte>(value); }
  void word(int offset, int vector, std::uint32_t value) {
    std::memcpy(block_ + offset + vector * 64 + row_ * 4, &value, sizeof value);
  }

 private:
  std::byte* block_;
  int row_;
};

constexpr std::uint32_t kLow = 0x0f0f0f0f;

// 32 fifth bits, bit k -> byte t, bit j with k = 4j + t.
std::uint32_t spread_fifth_bits(std::uint32_t bits) {
  std::uint32_t spread = 0;
  for (int t = 0; t < 4; ++t) {
    std::uint32_t every_fourth = (bits >> t) & 0x11111111;
    every_fourth = (every_fourth | every_fourth >> 3) & 0x03030303;
    every_fourth = (every_fourth | every_fourth >> 6) & 0x000f000f;
    spread |= ((every_fourth | every_fourth >> 12) & 0xff) << (8 * t);
  }
  return spread;
}

// Q4_0, Q4_1, Q5_0, Q5_1: [d] [m] [32 fifth bits] [16 bytes: low nibble k, high nibble 16 + k].
void pack_simple(const std::byte* source, bool with_minimum, bool with_fifth, RowOfBlock row) {
  const int scales = with_minimum ? 2 : 1;
  const int codes = 32 * scales;
  for (int i = 0; i < scales; ++i) row.half(32 * i, source + 2 * i);
  source += 2 * scales;
  if (with_fifth) {
    row.word(codes, 4, spread_fifth_bits(word_at(source)));
    source += 4;
  }
  for (int j = 0; j < 4; ++j) row.word(codes, j, word_at(source + 4 * j));
}

void pack_q8_0(const std::byte* source, RowOfBlock row) {
  row.half(0, source);
  for (int j = 0; j < 8; ++j) row.word(32, j, word_at(source + 2 + 4 * j));
}

// The 12 bytes of 6-bit scales and minimums that Q4_K and Q5_K share, regrouped to packed.h's bytes.
void pack_scales_k(const std::byte* source, RowOfBlock row) {
  constexpr int kScales = 64;
  unsigned sc[8], m[8];
  for (int s = 0; s < 4; ++s) {
    const unsigned a = byte_at(source + s), b = byte_at(source + s + 4), c = byte_at(source + s + 8);
    sc[s] = a & 63;
    m[s] = b & 63;
    sc[s + 4] = (c & 15) | (a >> 6) << 4;
    m[s + 4] = c >> 4 | (b >> 6) << 4;
  }
  for (int s = 0; s < 8; ++s) row.byte(kScales + 16 * s, sc[s] | (m[s] >> 4) << 6);
  for (int s = 0; s < 8; s += 2) row.byte(kScales + 128 + 8 * s, (m[s] & 15) | (m[s + 1] & 15) << 4);
}

// Q4_K, Q5_K: in the file, byte l of group g holds k = l of sub-blocks 2g (low nibble) and 2g + 1 (high).
void pack_q45_k(const std::byte* source, bool with_fifth, RowOfBlock row) {
  constexpr int kCodes = 64 + 12 * 16;
  const int sub_block_bytes = with_fifth ? 320 : 256;
  row.half(0, source);
  row.half(32, source + 2);
  pack_scales_k(source + 4, row);
  const std::byte* fifth = source + 16;
  const std::byte* nibbles = with_fifth ? fifth + 32 : fifth;
  for (int g = 0; g < 4; ++g, nibbles += 32) {
    const int even = kCodes + 2 * g * sub_block_bytes, odd = even + sub_block_bytes;
    for (int j = 0; j < 4; ++j) {
      const std::uint32_t a = word_at(nibbles + 4 * j), b = word_at(nibbles + 16 + 4 * j);
      row.word(even, j, (a & kLow) | (b & kLow) << 4);
      row.word(odd, j, (a >> 4 & kLow) | (b & ~kLow));
    }
  }
  for (int s = 0; with_fifth && s < 8; ++s) {
    std::uint32_t bits = 0;
    for (int j = 0; j < 8; ++j) bits |= (word_at(fifth + 4 * j) >> s & 0x01010101) << j;
    row.word(kCodes + s * sub_block_bytes, 4, bits);
  }
}

// Q6_K: [128 bytes of nibbles] [64 bytes of two high bits] [16 int8 scales] [d]. Half h of the block (128 values) has
// 64 nibble bytes and 32 high bytes; its part p of 32 values takes nibble bytes 32 * (p % 2)..., the low nibble for
// p < 2, and bits 2p, 2p + 1 of the high bytes.
void pack_q6_k(const std::byte* source, RowOfBlock row) {
  constexpr int kCodes = 32 + 16 * 16, kPartBytes = 384;
  row.half(0, source + 208);
  for (int s = 0; s < 16; ++s) row.byte(32 + 16 * s, byte_at(source + 192 + s));
  for (int part = 0; part < 8; ++part) {
    const int half = part / 4, p = part % 4;
    const std::byte* nibbles = source + 64 * half + 32 * (p % 2);
    const std::byte* high = source + 128 + 32 * half;
    const int shift = p < 2 ? 0 : 4, codes = kCodes + part * kPartBytes;
    for (int j = 0; j < 4; ++j) {
      const std::uint32_t a = word_at(nibbles + 4 * j) >> shift & kLow;
      const std::uint32_t b = word_at(nibbles + 16 + 4 * j) >> shift & kLow;
      row.word(codes, j, a | b << 4);
    }
    for (int h = 0; h < 2; ++h) {
      std::uint32_t bits = 0;
      for (int i = 0; i < 4; ++i) bits |= (word_at(high + 16 * h + 4 * i) >> (2 * p) & 0x03030303) << (2 * i);
      row.word(codes, 4 + h, bits);
    }
  }
}

void pack_block(WeightType type, const std::byte* source, RowOfBlock row) {
  switch (type) {
    case WeightType::q4_0: return pack_simple(source, false, false, row);
    case WeightType::q4_1: return pack_simple(source, true, false, row);
    case WeightType::q5_0: return pack_simple(source, false, true, row);
    case WeightType::q5_1: return pack_simple(source, true, true, row);
    case WeightType::q8_0: return pack_q8_0(source, row);
    case WeightType::q4_k: return pack_q45_k(source, false, row);
    case WeightType::q5_k: return pack_q45_k(source, true, row);
    case WeightType::q6_k: return pack_q6_k(source, row);
    default: return;
  }
}

// [16 rows][cols] -> [cols][16 rows]
template <int kBytes>
void transpose(const std::byte* const rows[kPanelRows], int cols, std::byte* panel) {
  for (int k = 0; k < cols; ++k) {
    for (int r = 0; r < kPanelRows; ++r, panel += kBytes) std::memcpy(panel, rows[r] + k * kBytes, kBytes);
  }
}

void transpose_floats(int value_bytes, const std::byte* const rows[kPanelRows], int cols, std::byte* panel) {
  constexpr int kChunk = 64;  // columns; a missing row reads zeros from here
  constexpr std::byte kZeros[kChunk * 4] = {};
  for (int k = 0; k < cols; k += kChunk) {
    const std::byte* chunk[kPanelRows];
    for (int r = 0; r < kPanelRows; ++r) {
      chunk[r] = rows[r] ? rows[r] + static_cast<std::ptrdiff_t>(k) * value_bytes : kZeros;
    }
    std::byte* to = panel + static_cast<std::ptrdiff_t>(k) * value_bytes * kPanelRows;
    const int count = cols - k < kChunk ? cols - k : kChunk;
    value_bytes == 4 ? transpose<4>(chunk, count, to) : transpose<2>(chunk, count, to);
  }
}

}  // namespace

std::size_t row_bytes(WeightType type, int cols) {
  const Block block = block_of(type);
  return static_cast<std::size_t>(cols / block.values) * static_cast<std::size_t>(block.bytes);
}

int block_values(WeightType type) { return block_of(type).values; }

void pack_panel_portable(WeightType type, const std::byte* const rows[kPanelRows], int cols, std::byte* panel) {
  const Block block = block_of(type);
  if (!is_quantized(type)) return transpose_floats(block.bytes, rows, cols, panel);
  constexpr std::byte kZeros[256] = {};
  for (std::ptrdiff_t b = 0; b < cols / block.values; ++b, panel += block.bytes * kPanelRows) {
    for (int r = 0; r < kPanelRows; ++r) {
      pack_block(type, rows[r] ? rows[r] + b * block.bytes : kZeros, RowOfBlock(panel, r));
    }
  }
}

}  // namespace couplet::kernels
