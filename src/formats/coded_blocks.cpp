#include "formats/coded_blocks.h"

#include <bit>

#include "formats/block_bytes.h"
#include "formats/iq_grids.h"

namespace couplet::formats {
namespace {

// Where a magnitude and a bit (sign or delta) make a code, the nibble is 2 * place of the magnitude + bit. IQ1's grid is -1,
// 0, 1, moved by an eighth up or, with the bit, down: in eighths, so that all codes are integers.
constexpr std::int8_t kIq1Codes[16] = {-7, -9, 1, -1, 9, 7};
constexpr std::int8_t kIq2Codes[16] = {8, -8, 25, -25, 43, -43};
constexpr std::int8_t kIq3XxsCodes[16] = {4, -4, 12, -12, 20, -20, 28, -28, 36, -36, 44, -44, 52, -52, 62, -62};
constexpr std::int8_t kIq3SCodes[16] = {1, -1, 3, -3, 5, -5, 7, -7, 9, -9, 11, -11, 13, -13, 15, -15};
constexpr std::int8_t kTernaryCodes[16] = {-1, 0, 1, 2};  // TQ2_0 has room for a 2

// A point's places, each in a byte of its own.
std::uint64_t spread_twos(std::uint64_t x) {  // eight of two bits
  x = (x | x << 24) & 0x000000ff000000ff;
  x = (x | x << 12) & 0x000f000f000f000f;
  return (x | x << 6) & 0x0303030303030303;
}
std::uint64_t spread_fours(std::uint64_t x) {  // eight of four bits
  x = (x | x << 16) & 0x0000ffff0000ffff;
  x = (x | x << 8) & 0x00ff00ff00ff00ff;
  return (x | x << 4) & 0x0f0f0f0f0f0f0f0f;
}
std::uint64_t spread_bits(std::uint64_t x) {  // eight of one bit
  x = (x | x << 28) & 0x0000000f0000000f;
  x = (x | x << 14) & 0x0003000300030003;
  return (x | x << 7) & 0x0101010101010101;
}

// Nibbles of values 8 * eighth, ..., 8 * eighth + 7, a byte each.
void put_eight(CodedBlock& block, int eighth, std::uint64_t nibbles) {
  std::uint8_t* const to = block.nibbles + 16 * (eighth / 4) + 8 * (eighth % 2);
  std::uint64_t bytes;
  std::memcpy(&bytes, to, sizeof bytes);
  bytes |= eighth % 4 < 2 ? nibbles : nibbles << 4;
  std::memcpy(to, &bytes, sizeof bytes);
}

std::int8_t odd(std::uint32_t s) { return static_cast<std::int8_t>(2 * s + 1); }

// Seven stored signs; the eighth makes their number even.
std::uint32_t eight_signs(std::uint32_t seven) { return seven | (static_cast<std::uint32_t>(std::popcount(seven)) & 1) << 7; }

// [d] and for every 32 values [4 grid indices] [4 x 7 signs, 4 bits of scale].
void code_iq2_xxs(const std::byte* in, CodedBlock& out) {
  out.d = half_at(in) / 8;
  for (int g = 0; g < 8; ++g) {
    const std::byte* group = in + 2 + 8 * g;
    const auto signs_and_scale = load<std::uint32_t>(group + 4);
    out.scales[2 * g] = out.scales[2 * g + 1] = odd(signs_and_scale >> 28);
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t signs = eight_signs(signs_and_scale >> (7 * i) & 127);
      put_eight(out, 4 * g + i, spread_twos(kIq2XxsGrid[byte_at(group, i)]) << 1 | spread_bits(signs));
    }
  }
}

// [d] [32 x (9 bits of grid index, 7 signs)] [16 nibbles of scales].
void code_iq2_xs(const std::byte* in, CodedBlock& out) {
  out.d = half_at(in) / 8;
  for (int s = 0; s < 16; ++s) out.scales[s] = odd(byte_at(in, 66 + s / 2) >> (4 * (s % 2)) & 15);
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t both = load<std::uint16_t>(in + 2 + 2 * i);
    put_eight(out, i, spread_twos(kIq2XsGrid[both & 511]) << 1 | spread_bits(eight_signs(both >> 9)));
  }
}

// [d] [32 low bytes of grid indices] [32 x 8 signs] [32 x 2 high bits] [16 nibbles of scales].
void code_iq2_s(const std::byte* in, CodedBlock& out) {
  out.d = half_at(in) / 8;
  for (int s = 0; s < 16; ++s) out.scales[s] = odd(byte_at(in, 74 + s / 2) >> (4 * (s % 2)) & 15);
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t index = byte_at(in, 2 + i) | (byte_at(in, 66 + i / 4) >> (2 * (i % 4)) & 3) << 8;
    put_eight(out, i, spread_twos(kIq2SGrid[index]) << 1 | spread_bits(byte_at(in, 34 + i)));
  }
}

// [d] [64 grid indices, of four values each] and for every 32 values [4 x 7 signs, 4 bits of scale].
void code_iq3_xxs(const std::byte* in, CodedBlock& out) {
  out.d = half_at(in) / 4;
  for (int i = 0; i < 32; ++i) {
    const auto signs_and_scale = load<std::uint32_t>(in + 66 + 4 * (i / 4));
    if (i % 2 == 0) out.scales[i / 2] = odd(signs_and_scale >> 28);
    const std::uint32_t places = kIq3XxsGrid[byte_at(in, 2 + 2 * i)] |
                                 static_cast<std::uint32_t>(kIq3XxsGrid[byte_at(in, 3 + 2 * i)]) << 16;
    const std::uint32_t signs = eight_signs(signs_and_scale >> (7 * (i % 4)) & 127);
    put_eight(out, i, spread_fours(places) << 1 | spread_bits(signs));
  }
}

// [d] [64 low bytes of grid indices] [64 ninth bits] [32 x 8 signs] [8 nibbles of scales].
void code_iq3_s(const std::byte* in, CodedBlock& out) {
  out.d = half_at(in);
  for (int i = 0; i < 32; ++i) {
    if (i % 2 == 0) out.scales[i / 2] = odd(byte_at(in, 106 + i / 8) >> (i / 4 % 2 * 4) & 15);
    const auto point = [&](int n) {
      return std::uint32_t{kIq3SGrid[byte_at(in, 2 + n) | (byte_at(in, 66 + n / 8) >> (n % 8) & 1) << 8]};
    };
    put_eight(out, i, spread_fours(point(2 * i) | point(2 * i + 1) << 16) << 1 | spread_bits(byte_at(in, 74 + i)));
  }
}

// [d] [32 low bytes of grid indices] and for every 32 values [4 x 3 high bits, 3 bits of scale, the delta's sign].
void code_iq1_s(const std::byte* in, CodedBlock& out) {
  out.d = half_at(in) / 8;
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t group = load<std::uint16_t>(in + 34 + 2 * (i / 4));
    if (i % 2 == 0) out.scales[i / 2] = odd(group >> 12 & 7);
    const std::uint32_t index = byte_at(in, 2 + i) | (group >> (3 * (i % 4)) & 7) << 8;
    put_eight(out, i, spread_twos(kIq1Grid[index]) << 1 | spread_bits(group >> 15 ? 255 : 0));
  }
}

// [32 low bytes of grid indices] [32 x (3 high bits, the delta's sign)] [4 x (4 x 3 bits of scale, 4 bits of d)].
void code_iq1_m(const std::byte* in, CodedBlock& out) {
  std::uint32_t d = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t scales = load<std::uint16_t>(in + 48 + 2 * i);
    d |= scales >> 12 << (4 * i);
    for (int s = 0; s < 4; ++s) out.scales[4 * i + s] = odd(scales >> (3 * s) & 7);
  }
  out.d = half_to_float(static_cast<std::uint16_t>(d)) / 8;
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t high = byte_at(in, 32 + i / 2) >> (4 * (i % 2)) & 15;
    const std::uint32_t index = byte_at(in, i) | (high & 7) << 8;
    put_eight(out, i, spread_twos(kIq1Grid[index]) << 1 | spread_bits(high >> 3 ? 255 : 0));
  }
}

void put(CodedBlock& block, int k, std::uint32_t nibble) {
  std::uint8_t& byte = block.nibbles[16 * (k / 32) + k % 16];
  byte = static_cast<std::uint8_t>(byte | nibble << (k % 32 < 16 ? 0 : 4));
}

// [48 bytes of five digits] [4 bytes of four] [d]. A byte is a fraction of 256ths whose digits in base 3 are the values; all
// first digits of 32 bytes come first, then all second ones; then those of 16 bytes and of the last 4.
void code_tq1_0(const std::byte* in, CodedBlock& out) {
  out.d = half_at(in + 52);
  for (std::int8_t& scale : out.scales) scale = 1;
  int k = 0;
  const auto put_digits = [&](int first, int num_bytes, int digits) {
    for (std::uint32_t digit = 0, power = 1; digit < static_cast<std::uint32_t>(digits); ++digit, power *= 3)
      for (int i = first; i < first + num_bytes; ++i) put(out, k++, ((byte_at(in, i) * power) & 255) * 3 >> 8);
  };
  put_digits(0, 32, 5);
  put_digits(32, 16, 5);
  put_digits(48, 4, 4);
}

// [64 bytes of four 2-bit values] [d]: in each half all lowest ones of 32 bytes come first.
void code_tq2_0(const std::byte* in, CodedBlock& out) {
  out.d = half_at(in + 64);
  for (std::int8_t& scale : out.scales) scale = 1;
  for (int k = 0; k < kCodedValues; ++k) put(out, k, byte_at(in, k / 128 * 32 + k % 32) >> (k / 32 % 4 * 2) & 3);
}

struct Coding {
  void (*code)(const std::byte*, CodedBlock&);  // sets all but codes; the nibbles are 0 before
  const std::int8_t* codes;
};

Coding coding_of(TensorType type) {
  switch (type) {
    case TensorType::iq1_s: return {code_iq1_s, kIq1Codes};
    case TensorType::iq1_m: return {code_iq1_m, kIq1Codes};
    case TensorType::iq2_xxs: return {code_iq2_xxs, kIq2Codes};
    case TensorType::iq2_xs: return {code_iq2_xs, kIq2Codes};
    case TensorType::iq2_s: return {code_iq2_s, kIq2Codes};
    case TensorType::iq3_xxs: return {code_iq3_xxs, kIq3XxsCodes};
    case TensorType::iq3_s: return {code_iq3_s, kIq3SCodes};
    case TensorType::tq1_0: return {code_tq1_0, kTernaryCodes};
    case TensorType::tq2_0: return {code_tq2_0, kTernaryCodes};
    default: return {nullptr, nullptr};
  }
}

}  // namespace

bool is_coded(TensorType type) { return coding_of(type).code != nullptr; }

void to_coded_blocks(TensorType type, const std::byte* bytes, std::size_t count, CodedBlock* out) {
  const Coding coding = coding_of(type);
  for (std::size_t i = 0; i < count / kCodedValues; ++i, bytes += info(type).block_bytes, ++out) {
    *out = {};
    std::memcpy(out->codes, coding.codes, sizeof out->codes);
    coding.code(bytes, *out);
  }
}

void dequantize(const CodedBlock& block, float* out) {
  for (int k = 0; k < kCodedValues; ++k) {
    const int nibble = block.nibbles[16 * (k / 32) + k % 16] >> (k % 32 < 16 ? 0 : 4) & 15;
    out[k] = block.d * static_cast<float>(block.scales[k / 16]) * static_cast<float>(block.codes[nibble]);
  }
}

}  // namespace couplet::formats
