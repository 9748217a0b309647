// File rows -> panels (packed.h), four rows of a block at a time: words (four codes each) that follow each other in a
// file row stand in lanes below each other in the panel. So a panel is a transpose of words with, for some types, a
// regrouping of nibbles and bits. The compiler's own vectors bring it near the speed of memory on every machine.

#include <cstdint>
#include <cstring>

#include "kernels/packed.h"

namespace couplet::kernels {
namespace {

struct Block {
  int values;  // of one row
  int bytes;   // in the file
  int packed_bytes;

  constexpr Block(int values, int bytes) : Block(values, bytes, bytes) {}
  constexpr Block(int values, int bytes, int packed_bytes) : values(values), bytes(bytes), packed_bytes(packed_bytes) {}
};

constexpr Block kBlocks[kNumWeightTypes] = {
    {1, 4},     {1, 2},     {1, 2},                      // f32, f16, bf16
    {32, 18},   {32, 20},   {32, 22},   {32, 24}, {32, 34},  // q4_0, q4_1, q5_0, q5_1, q8_0
    {256, 144}, {256, 176}, {256, 210},                  // q4_k, q5_k, q6_k
    {256, 84},  {256, 110, 114},                         // q2_k, q3_k
    {32, 18},   {256, 136, 138},                         // iq4_nl, iq4_xs
    {32, 17},   {256, 164, 149},                         // mxfp4, coded
};

constexpr Block block_of(WeightType type) { return kBlocks[static_cast<int>(type)]; }

// A word of each of four rows; the same as halves and as bytes.
using Words = std::uint32_t __attribute__((vector_size(16)));
using Halves = std::uint16_t __attribute__((vector_size(16)));
using Bytes = std::uint8_t __attribute__((vector_size(16)));

struct FourWords {
  Words word[4];  // [j]: the j-th of four consecutive words, of each row
};

// [4 rows][4] -> [4][4 rows]
FourWords transposed(Words a, Words b, Words c, Words d) {
  const Words ab01 = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab23 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Words cd01 = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd23 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  return {{__builtin_shufflevector(ab01, cd01, 0, 1, 4, 5), __builtin_shufflevector(ab01, cd01, 2, 3, 6, 7),
           __builtin_shufflevector(ab23, cd23, 0, 1, 4, 5), __builtin_shufflevector(ab23, cd23, 2, 3, 6, 7)}};
}

// Each element of the first half beside the element of the second half that stands where it does.
Halves interleaved(Halves x) {
  const Halves second = __builtin_shufflevector(x, x, 4, 5, 6, 7, 4, 5, 6, 7);
  return __builtin_shufflevector(x, second, 0, 8, 1, 9, 2, 10, 3, 11);
}
Bytes interleaved(Bytes x) {
  const Bytes second = __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15);
  return __builtin_shufflevector(x, second, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

// The same block of four file rows, at four addresses.
struct Source {
  const std::byte* row[4];

  Words word(int offset) const {
    std::uint32_t words[4];
    for (int r = 0; r < 4; ++r) std::memcpy(&words[r], row[r] + offset, 4);
    return Words{words[0], words[1], words[2], words[3]};
  }
  FourWords four_words(int offset) const {
    Words words[4];
    for (int r = 0; r < 4; ++r) std::memcpy(&words[r], row[r] + offset, 16);
    return transposed(words[0], words[1], words[2], words[3]);
  }
};

// Those four rows' share of a packed block.
class Target {
 public:
  Target(std::byte* block, int first_row) : block_(block), row_(first_row) {}

  void half(int offset, const Source& source, int from) {
    for (int r = 0; r < 4; ++r) std::memcpy(block_ + offset + 2 * (row_ + r), source.row[r] + from, 2);
  }
  void word(int offset, int vector, Words value) {
    std::memcpy(block_ + offset + vector * 64 + row_ * 4, &value, sizeof value);
  }
  // The low halves of the words to [16 rows] halves, the high ones to the next.
  void halves(int offset, Words value) {
    const Halves halves = interleaved(interleaved(reinterpret_cast<Halves>(value)));
    std::memcpy(block_ + offset + 2 * row_, &halves, 8);
    std::memcpy(block_ + offset + 32 + 2 * row_, reinterpret_cast<const std::byte*>(&halves) + 8, 8);
  }
  template <int kBytes>
  void value(int r, const std::byte* source) { std::memcpy(block_ + kBytes * (row_ + r), source, kBytes); }
  // Byte s of each row's word to [s][16 rows] bytes.
  void bytes(int offset, Words value) {
    const Bytes bytes = interleaved(interleaved(reinterpret_cast<Bytes>(value)));
    for (int s = 0; s < 4; ++s)
      std::memcpy(block_ + offset + 16 * s + row_, reinterpret_cast<const std::byte*>(&bytes) + 4 * s, 4);
  }
  // What all rows share, from the first.
  void shared(int offset, const Source& source, int from, std::size_t bytes) {
    if (row_ == 0) std::memcpy(block_ + offset, source.row[0] + from, bytes);
  }

 private:
  std::byte* block_;
  int row_;
};

constexpr std::uint32_t kLow = 0x0f0f0f0f, kTwo = 0x03030303;

// 32 fifth bits, bit k -> byte t, bit j with k = 4j + t.
Words spread_fifth_bits(Words bits) {
  Words spread = {};
  for (int t = 0; t < 4; ++t) {
    Words every_fourth = (bits >> t) & 0x11111111;
    every_fourth = (every_fourth | every_fourth >> 3) & 0x03030303;
    every_fourth = (every_fourth | every_fourth >> 6) & 0x000f000f;
    spread |= ((every_fourth | every_fourth >> 12) & 0xff) << (8 * t);
  }
  return spread;
}

// 32 values' nibbles, as Q4_0 has them, to vectors.
void pack_nibbles(const Source& source, int from, Target target, int offset) {
  const FourWords nibbles = source.four_words(from);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) target.word(offset, j, nibbles.word[j]);
}

// Q4_0, Q4_1, Q5_0, Q5_1: [d] [m] [32 fifth bits] [16 bytes: low nibble k, high nibble 16 + k].
template <bool kMinimum, bool kFifth>
void pack_simple(const Source& source, Target target) {
  constexpr int kScales = kMinimum ? 2 : 1, kCodes = 32 * kScales;
  for (int i = 0; i < kScales; ++i) target.half(32 * i, source, 2 * i);
  if (kFifth) target.word(kCodes, 4, spread_fifth_bits(source.word(2 * kScales)));
  pack_nibbles(source, 2 * kScales + (kFifth ? 4 : 0), target, kCodes);
}

void pack_q8_0(const Source& source, Target target) {
  target.half(0, source, 0);
  for (int h = 0; h < 2; ++h) {
    const FourWords codes = source.four_words(2 + 16 * h);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) target.word(32, 4 * h + j, codes.word[j]);
  }
}

// The 12 bytes of 6-bit scales and minimums that Q4_K and Q5_K share, regrouped to packed.h's bytes.
void pack_scales_k(const Source& source, int from, Target target) {
  constexpr int kScales = 64;
  constexpr std::uint32_t kSix = 0x3f3f3f3f;
  // Byte s: a has sc[s] and two bits of sc[s + 4], b the same of m, c the low four bits of sc[s + 4] and of m[s + 4].
  const Words a = source.word(from), b = source.word(from + 4), c = source.word(from + 8);
  const Words m_low = b & kLow, m_high = c >> 4 & kLow;  // the low nibbles of m[s], m[s + 4]
  target.bytes(kScales, (a & kSix) | (b >> 4 & kTwo) << 6);
  target.bytes(kScales + 64, (c & kLow) | (a >> 6 & kTwo) << 4 | (b >> 6 & kTwo) << 6);
  // Two neighbours share a byte: m[0], m[1], ... are bytes 0 and 2 of `pairs`.
  const Words low_pairs = m_low | m_low >> 4, high_pairs = m_high | m_high >> 4;
  target.bytes(kScales + 128, (low_pairs & 0xff) | (low_pairs >> 8 & 0xff00) | (high_pairs & 0xff) << 16 |
                                  (high_pairs << 8 & 0xff000000));
}

// Bit s of byte l of 32 belongs to value l of part s of 8; a part's become one vector.
void pack_highest_bits(const Source& source, int from, Target target, int offset, int part_bytes) {
  const FourWords first = source.four_words(from), second = source.four_words(from + 16);
  for (int s = 0; s < 8; ++s) {
    Words bits = {};
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j)
      bits |= (first.word[j] >> s & 0x01010101) << j | (second.word[j] >> s & 0x01010101) << (j + 4);
    target.word(offset + s * part_bytes, 0, bits);
  }
}

// Bits 2p, 2p + 1 of byte l of 32 belong to value l of part p of 4; a part's become two vectors.
void pack_two_bits(const Source& source, int from, Target target, int offset, int part_bytes) {
  const FourWords in[2] = {source.four_words(from), source.four_words(from + 16)};
  for (int p = 0; p < 4; ++p) {
    for (int h = 0; h < 2; ++h) {
      Words bits = {};
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) bits |= (in[h].word[i] >> (2 * p) & kTwo) << (2 * i);
      target.word(offset + p * part_bytes, h, bits);
    }
  }
}

// Q4_K, Q5_K: in the file, byte l of group g holds k = l of sub-blocks 2g (low nibble) and 2g + 1 (high).
template <bool kFifth>
void pack_q45_k(const Source& source, Target target) {
  constexpr int kCodes = 64 + 12 * 16, kSubBlockBytes = kFifth ? 320 : 256;
  target.half(0, source, 0);
  target.half(32, source, 2);
  pack_scales_k(source, 4, target);
  constexpr int kNibbles = kFifth ? 48 : 16;
  for (int g = 0; g < 4; ++g) {
    const int even = kCodes + 2 * g * kSubBlockBytes, odd = even + kSubBlockBytes;
    const FourWords a = source.four_words(kNibbles + 32 * g), b = source.four_words(kNibbles + 32 * g + 16);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      target.word(even, j, (a.word[j] & kLow) | (b.word[j] & kLow) << 4);
      target.word(odd, j, (a.word[j] >> 4 & kLow) | (b.word[j] & ~kLow));
    }
  }
  if (!kFifth) return;
  pack_highest_bits(source, 16, target, kCodes + 256, kSubBlockBytes);
}

// Q6_K: [128 bytes of nibbles] [64 bytes of two high bits] [16 int8 scales] [d]. Half h of the block (128 values) has
// 64 nibble bytes and 32 high bytes; its part p of 32 values takes nibble bytes 32 * (p % 2)..., the low nibble for
// p < 2, and bits 2p, 2p + 1 of the high bytes.
void pack_q6_k(const Source& source, Target target) {
  constexpr int kCodes = 32 + 16 * 16, kPartBytes = 384;
  target.half(0, source, 208);
  const FourWords scales = source.four_words(192);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) target.bytes(32 + 64 * j, scales.word[j]);
  for (int half = 0; half < 2; ++half) {
    pack_two_bits(source, 128 + 32 * half, target, kCodes + 4 * half * kPartBytes + 256, kPartBytes);
    for (int p = 0; p < 4; ++p) {
      const int nibbles = 64 * half + 32 * (p % 2), shift = p < 2 ? 0 : 4;
      const int codes = kCodes + (4 * half + p) * kPartBytes;
      const FourWords a = source.four_words(nibbles), b = source.four_words(nibbles + 16);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j)
        target.word(codes, j, (a.word[j] >> shift & kLow) | (b.word[j] >> shift & kLow) << 4);
    }
  }
}

// Q2_K: [16 bytes of scale and minimum] [64 bytes of codes] [d] [dmin].
void pack_q2_k(const Source& source, Target target) {
  constexpr int kCodes = 64 + 16 * 16, kPartBytes = 128;
  target.half(0, source, 80);
  target.half(32, source, 82);
  const FourWords scales = source.four_words(0);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) target.bytes(64 + 64 * j, scales.word[j]);
  for (int half = 0; half < 2; ++half)
    pack_two_bits(source, 16 + 32 * half, target, kCodes + 4 * half * kPartBytes, kPartBytes);
}

// Six bits a byte, less 32.
Words signed_scales(Words low, Words high) {
  return reinterpret_cast<Words>(reinterpret_cast<Bytes>((low & kLow) | (high & kTwo) << 4) - 32);
}

// Q3_K: [32 bytes of third bits] [64 bytes of two bits] [8 bytes of low, 4 of high bits of 16 scales] [d].
void pack_q3_k(const Source& source, Target target) {
  constexpr int kScales = 32, kCodes = kScales + 16 * 16, kPartBytes = 192;
  target.half(0, source, 108);
  const Words a = source.word(96), b = source.word(100), high = source.word(104);
  target.bytes(kScales, signed_scales(a, high));
  target.bytes(kScales + 64, signed_scales(b, high >> 2));
  target.bytes(kScales + 128, signed_scales(a >> 4, high >> 4));
  target.bytes(kScales + 192, signed_scales(b >> 4, high >> 6));
  for (int half = 0; half < 2; ++half)
    pack_two_bits(source, 32 + 32 * half, target, kCodes + 4 * half * kPartBytes, kPartBytes);
  pack_highest_bits(source, 0, target, kCodes + 128, kPartBytes);
}

// IQ4_XS: [d] [2 bytes of high bits, 4 of low nibbles of 8 scales] [8 x 16 bytes of nibbles].
void pack_iq4_xs(const Source& source, Target target) {
  constexpr int kScales = 32, kCodes = kScales + 8 * 16;
  target.half(0, source, 0);
  for (int half = 0; half < 2; ++half) {
    Words low = source.word(4) >> (16 * half) & 0xffff, high = source.word(0) >> (16 + 8 * half) & 0xff;
    low = (low | low << 8) & 0x00ff00ff;  // a scale a byte
    low = low | low << 4;
    high = (high | high << 12) & 0x000f000f;
    high = high | high << 6;
    target.bytes(kScales + 64 * half, signed_scales(low, high));
  }
  for (int part = 0; part < 8; ++part) pack_nibbles(source, 8 + 16 * part, target, kCodes + 256 * part);
}

void pack_mxfp4(const Source& source, Target target) {
  for (int r = 0; r < 4; ++r) target.value<1>(r, source.row[r]);
  pack_nibbles(source, 1, target, 16);
}

void pack_coded(const Source& source, Target target) {
  constexpr int kScales = 64, kList = kScales + 16 * 16, kCodes = kList + 16;
  for (int r = 0; r < 4; ++r) target.value<4>(r, source.row[r]);
  target.shared(kList, source, 4, 16);
  const FourWords scales = source.four_words(20);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) target.bytes(kScales + 64 * j, scales.word[j]);
  for (int part = 0; part < 8; ++part) pack_nibbles(source, 36 + 16 * part, target, kCodes + 256 * part);
}

template <void (*kPackBlock)(const Source&, Target)>
void pack_blocks(Block block, const std::byte* const rows[kPanelRows], int cols, std::byte* panel) {
  constexpr std::byte kZeros[256] = {};
  for (int first = 0; first < kPanelRows; first += 4) {
    Source source;
    int step[4];  // a missing row stays at the zeros
    for (int r = 0; r < 4; ++r) {
      source.row[r] = rows[first + r] ? rows[first + r] : kZeros;
      step[r] = rows[first + r] ? block.bytes : 0;
    }
    std::byte* to = panel;
    for (int b = 0; b < cols / block.values; ++b, to += block.packed_bytes * kPanelRows) {
      kPackBlock(source, Target(to, first));
      for (int r = 0; r < 4; ++r) source.row[r] += step[r];
    }
  }
}

// One column of four rows of plain values.
template <int kBytes>
void pack_value(const Source& source, Target target) {
  for (int r = 0; r < 4; ++r) target.value<kBytes>(r, source.row[r]);
}

void pack_four_floats(const Source& source, Target target) {
  const FourWords floats = source.four_words(0);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) target.word(0, j, floats.word[j]);
}

// Two columns share a word.
void pack_eight_halves(const Source& source, Target target) {
  const FourWords pairs = source.four_words(0);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) target.halves(64 * j, pairs.word[j]);
}

// [16 rows][cols] -> [cols][16 rows]: whole vectors of columns first, then one by one.
template <void (*kPackVector)(const Source&, Target), int kBytes>
void pack_floats(const std::byte* const rows[kPanelRows], int cols, std::byte* panel) {
  constexpr Block kVector = {16 / kBytes, 16}, kValue = {1, kBytes};
  const int whole = cols - cols % kVector.values;
  pack_blocks<kPackVector>(kVector, rows, whole, panel);
  const std::ptrdiff_t done = std::ptrdiff_t{whole} * kBytes;  // of each row
  const std::byte* rest[kPanelRows];
  for (int r = 0; r < kPanelRows; ++r) rest[r] = rows[r] ? rows[r] + done : nullptr;
  pack_blocks<pack_value<kBytes>>(kValue, rest, cols - whole, panel + done * kPanelRows);
}

}  // namespace

std::size_t file_row_bytes(WeightType type, int cols) {
  const Block block = block_of(type);
  return static_cast<std::size_t>(cols / block.values) * static_cast<std::size_t>(block.bytes);
}

std::size_t row_bytes(WeightType type, int cols) {
  const Block block = block_of(type);
  return static_cast<std::size_t>(cols / block.values) * static_cast<std::size_t>(block.packed_bytes);
}

int block_values(WeightType type) { return block_of(type).values; }

void pack_panel_portable(WeightType type, const std::byte* const rows[kPanelRows], int cols, std::byte* panel) {
  const Block block = block_of(type);
  switch (type) {
    case WeightType::f32: return pack_floats<pack_four_floats, 4>(rows, cols, panel);
    case WeightType::f16:
    case WeightType::bf16: return pack_floats<pack_eight_halves, 2>(rows, cols, panel);
    case WeightType::q4_0:
    case WeightType::iq4_nl: return pack_blocks<pack_simple<false, false>>(block, rows, cols, panel);
    case WeightType::q4_1: return pack_blocks<pack_simple<true, false>>(block, rows, cols, panel);
    case WeightType::q5_0: return pack_blocks<pack_simple<false, true>>(block, rows, cols, panel);
    case WeightType::q5_1: return pack_blocks<pack_simple<true, true>>(block, rows, cols, panel);
    case WeightType::q8_0: return pack_blocks<pack_q8_0>(block, rows, cols, panel);
    case WeightType::q4_k: return pack_blocks<pack_q45_k<false>>(block, rows, cols, panel);
    case WeightType::q5_k: return pack_blocks<pack_q45_k<true>>(block, rows, cols, panel);
    case WeightType::q6_k: return pack_blocks<pack_q6_k>(block, rows, cols, panel);
    case WeightType::q2_k: return pack_blocks<pack_q2_k>(block, rows, cols, panel);
    case WeightType::q3_k: return pack_blocks<pack_q3_k>(block, rows, cols, panel);
    case WeightType::iq4_xs: return pack_blocks<pack_iq4_xs>(block, rows, cols, panel);
    case WeightType::mxfp4: return pack_blocks<pack_mxfp4>(block, rows, cols, panel);
    case WeightType::coded: return pack_blocks<pack_coded>(block, rows, cols, panel);
  }
}

}  // namespace couplet::kernels
