#include "formats/quantize_k.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "base/half.h"

namespace couplet::formats {
namespace {

// Each sub-block's scale starts at one that spans its values, a little stretched and shrunk. From each start the codes
// are taken, and from the codes the best scale; more starts gain less than 0.1 % of the error.
constexpr std::array kStretches{-1.0F, -0.5F, 0.0F, 0.5F, 1.0F};

// To the nearest integer, ties to even, for numbers well below 2^22: a sum with 1.5 * 2^23 has no room for a fraction.
float nearest(float x) { return (x + 0x1.8p23F) - 0x1.8p23F; }

float clamped(float x, float least, float most) {
  x = x > least ? x : least;
  return x < most ? x : most;
}

float inverse_of(float scale) {
  const float inverse = 1.0F / scale;
  return std::abs(inverse) <= std::numeric_limits<float>::max() ? inverse : 0.0F;
}

// A sum over a sub-block in a fixed order that leaves compilers room for vectors.
constexpr int kLanes = 8;
struct Sum {
  std::array<float, kLanes> lanes{};

  float total() const {
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
  }
};

template <int N, class Body>
void for_lanes(Body&& body) {
  for (int i = 0; i < N; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) body(i + lane, static_cast<std::size_t>(lane));
}

// What the codes of a sub-block mean: value = scale * code - min. Q3_K and Q6_K have no minimum and codes of both signs,
// the others codes from 0 and a minimum of at least 0.
struct Line {
  float scale = 0, min = 0;
};

// One kind of sub-block: N values, codes in [kLeast, kMost].
template <int kN, int kLeast, int kMost>
struct SubBlock {
  static constexpr int N = kN;
  static constexpr bool kHasMin = kLeast == 0;

  static float code(float value, const Line& line, float inverse) {
    return nearest(clamped((value + line.min) * inverse, static_cast<float>(kLeast), static_cast<float>(kMost)));
  }

  static float squared_error(const float* x, const Line& line) {
    const float inverse = inverse_of(line.scale);
    Sum sum;
    for_lanes<N>([&](int i, std::size_t lane) {
      const float error = x[i] - (line.scale * code(x[i], line, inverse) - line.min);
      sum.lanes[lane] += error * error;
    });
    return sum.total();
  }

  // A line and how much of the sum of squares it explains: the more, the less is left as error.
  struct Fit {
    Line line;
    double gain = 0;
  };

  // The best line for the codes that `from` gives.
  static Fit fit(const float* x, double sum_x, const Line& from) {
    const float inverse = inverse_of(from.scale);
    Sum q, qq, qx;
    for_lanes<N>([&](int i, std::size_t lane) {
      const float c = code(x[i], from, inverse);
      q.lanes[lane] += c;
      qq.lanes[lane] += c * c;
      qx.lanes[lane] += c * x[i];
    });
    return solve(q.total(), qq.total(), qx.total(), sum_x);
  }

  // Least squares of x = scale * q + offset, by the sums; the offset stays where a minimum can be: at most 0.
  static Fit solve(double sum_q, double sum_qq, double sum_qx, double sum_x) {
    double scale = sum_qq > 0 ? sum_qx / sum_qq : 0, offset = 0;
    const double determinant = N * sum_qq - sum_q * sum_q;
    if (kHasMin && determinant > 0) {
      const double free_offset = (sum_qq * sum_x - sum_q * sum_qx) / determinant;
      if (free_offset < 0) {
        offset = free_offset;
        scale = (N * sum_qx - sum_x * sum_q) / determinant;
      }
    }
    if (kHasMin && !(scale > 0)) return {};
    return {{static_cast<float>(scale), static_cast<float>(-offset)}, scale * sum_qx + offset * sum_x};
  }

  static Line best_line(const float* x) {
    float least = std::min(x[0], 0.0F), most = x[0], sum_x = 0;
    for (int i = 0; i < N; ++i) {
      least = std::min(least, x[i]);
      most = std::max(most, x[i]);
      sum_x += x[i];
    }
    Fit best;
    best.line.min = kHasMin ? std::max(-sum_x / static_cast<float>(N), 0.0F) : 0;  // all that equal values need
    const auto try_from = [&](const Line& start) {
      const Fit better = fit(x, static_cast<double>(sum_x), start);
      if (better.gain > best.gain) best = better;
    };
    const float extreme = -least > most ? least : most;
    for (const float stretch : kStretches) {
      if (kHasMin) {
        try_from({(most - least) / (static_cast<float>(kMost) + stretch), -least});
        continue;
      }
      try_from({extreme / (static_cast<float>(kLeast) + stretch), 0});
      // With few codes it matters which end has one more.
      if (kMost < 8) try_from({extreme / (static_cast<float>(kMost) + stretch), 0});
    }
    if (best.gain > 0) try_from(best.line);
    return best.line;
  }
};

// A block of 256: its sub-blocks' scales and minimums are whole multiples of two halves.
template <class Sub, int kLeastScale, int kMostScale>
struct SuperBlock {
  static constexpr std::size_t kNumSubBlocks = static_cast<std::size_t>(kSuperBlock / Sub::N);
  std::uint16_t scale = 0, min = 0;
  std::array<int, kNumSubBlocks> scales{}, mins{};
  std::array<int, kSuperBlock> codes{};

  // False: out of the halves' range.
  bool find(const float* x) {
    std::array<Line, kNumSubBlocks> lines;
    float extreme = 0, most_min = 0;
    for (std::size_t s = 0; s < kNumSubBlocks; ++s) {
      lines[s] = Sub::best_line(x + s * Sub::N);
      if (std::abs(lines[s].scale) > std::abs(extreme)) extreme = lines[s].scale;
      most_min = std::max(most_min, lines[s].min);
    }
    // Where scales have both signs, the extreme one gets the extreme code: there is one more below 0 than above.
    scale = float_to_half(extreme / static_cast<float>(kLeastScale < 0 ? kLeastScale : kMostScale));
    min = float_to_half(most_min / static_cast<float>(kMostScale));
    if (!is_finite_half(scale) || !is_finite_half(min)) return false;
    for (std::size_t s = 0; s < kNumSubBlocks; ++s) {
      settle(x + s * Sub::N, lines[s], scales[s], mins[s]);
      const Line line = line_of(scales[s], mins[s]);
      const float inverse = inverse_of(line.scale);
      for (std::size_t i = s * Sub::N; i < (s + 1) * Sub::N; ++i) codes[i] = static_cast<int>(Sub::code(x[i], line, inverse));
    }
    return true;
  }

 private:
  Line line_of(int in_scales, int in_mins) const {
    return {half_to_float(scale) * static_cast<float>(in_scales), half_to_float(min) * static_cast<float>(in_mins)};
  }

  // Rounding scale and minimum one by one is not the best for both: their neighbours are tried.
  void settle(const float* x, const Line& line, int& best_scale, int& best_min) const {
    const auto whole = [](float value, float unit, int least, int most) {
      return static_cast<int>(nearest(clamped(value * inverse_of(unit), static_cast<float>(least), static_cast<float>(most))));
    };
    const int near_scale = whole(line.scale, half_to_float(scale), kLeastScale, kMostScale);
    const int near_min = whole(line.min, half_to_float(min), 0, kMostScale);
    best_scale = near_scale;
    best_min = near_min;
    float least_error = Sub::squared_error(x, line_of(near_scale, near_min));
    for (int s = std::max(near_scale - 1, kLeastScale); s <= std::min(near_scale + 1, kMostScale); ++s) {
      for (int m = Sub::kHasMin ? std::max(near_min - 1, 0) : 0; m <= (Sub::kHasMin ? std::min(near_min + 1, kMostScale) : 0); ++m) {
        if (s == near_scale && m == near_min) continue;
        const float error = Sub::squared_error(x, line_of(s, m));
        if (error < least_error) least_error = error, best_scale = s, best_min = m;
      }
    }
  }
};

using BlockQ2K = SuperBlock<SubBlock<16, 0, 3>, 0, 15>;
using BlockQ3K = SuperBlock<SubBlock<16, -4, 3>, -32, 31>;
using BlockQ4K = SuperBlock<SubBlock<32, 0, 15>, 0, 63>;
using BlockQ5K = SuperBlock<SubBlock<32, 0, 31>, 0, 63>;
using BlockQ6K = SuperBlock<SubBlock<16, -32, 31>, -128, 127>;

// How the parts of a block lie in its bytes is what dequantize() reads (quant_types.h).

void put_half(std::byte* at, std::uint16_t half) { std::memcpy(at, &half, sizeof half); }
std::byte low_byte(int value) { return static_cast<std::byte>(value & 0xff); }

// Bits [shift, shift + width) of the codes of 128 values, `per_byte` in a byte, their groups of `apart` behind each other.
template <int kPerByte, int kApart>
void put_bits(const int* codes, int shift, std::byte* out) {
  constexpr int kWidth = 8 / kPerByte, kMask = (1 << kWidth) - 1;
  for (int i = 0; i < kApart; ++i) {
    int byte = 0;
    for (int group = 0; group < kPerByte; ++group) byte |= (codes[group * kApart + i] >> shift & kMask) << group * kWidth;
    out[i] = low_byte(byte);
  }
}

// The scales and minimums of eight sub-blocks, 6 bits each in 12 bytes.
void put_scales_and_mins(const std::array<int, 8>& scales, const std::array<int, 8>& mins, std::byte* out) {
  for (std::size_t i = 0; i < 4; ++i) {
    out[i] = low_byte(scales[i] | scales[i + 4] >> 4 << 6);
    out[i + 4] = low_byte(mins[i] | mins[i + 4] >> 4 << 6);
    out[i + 8] = low_byte((scales[i + 4] & 15) | (mins[i + 4] & 15) << 4);
  }
}

}  // namespace

bool quantize_q2_k(const float* values, std::byte* out) {
  BlockQ2K block;
  if (!block.find(values)) return false;
  for (std::size_t s = 0; s < 16; ++s) out[s] = low_byte(block.scales[s] | block.mins[s] << 4);
  for (int half = 0; half < 2; ++half) put_bits<4, 32>(block.codes.data() + half * 128, 0, out + 16 + half * 32);
  put_half(out + 80, block.scale);
  put_half(out + 82, block.min);
  return true;
}

bool quantize_q3_k(const float* values, std::byte* out) {
  BlockQ3K block;
  if (!block.find(values)) return false;
  for (int& code : block.codes) code += 4;
  for (int& scale : block.scales) scale += 32;
  put_bits<8, 32>(block.codes.data(), 2, out);
  for (int half = 0; half < 2; ++half) put_bits<4, 32>(block.codes.data() + half * 128, 0, out + 32 + half * 32);
  put_bits<2, 8>(block.scales.data(), 0, out + 96);
  put_bits<4, 4>(block.scales.data(), 4, out + 104);
  put_half(out + 108, block.scale);
  return true;
}

bool quantize_q4_k(const float* values, std::byte* out) {
  BlockQ4K block;
  if (!block.find(values)) return false;
  put_half(out, block.scale);
  put_half(out + 2, block.min);
  put_scales_and_mins(block.scales, block.mins, out + 4);
  for (int pair = 0; pair < 4; ++pair) put_bits<2, 32>(block.codes.data() + pair * 64, 0, out + 16 + pair * 32);
  return true;
}

bool quantize_q5_k(const float* values, std::byte* out) {
  BlockQ5K block;
  if (!block.find(values)) return false;
  put_half(out, block.scale);
  put_half(out + 2, block.min);
  put_scales_and_mins(block.scales, block.mins, out + 4);
  put_bits<8, 32>(block.codes.data(), 4, out + 16);
  for (int pair = 0; pair < 4; ++pair) put_bits<2, 32>(block.codes.data() + pair * 64, 0, out + 48 + pair * 32);
  return true;
}

bool quantize_q6_k(const float* values, std::byte* out) {
  BlockQ6K block;
  if (!block.find(values)) return false;
  for (int& code : block.codes) code += 32;
  for (int half = 0; half < 2; ++half) {
    const int* codes = block.codes.data() + half * 128;
    put_bits<2, 64>(codes, 0, out + half * 64);
    put_bits<4, 32>(codes, 4, out + 128 + half * 32);
  }
  for (std::size_t s = 0; s < 16; ++s) out[192 + s] = low_byte(block.scales[s]);
  put_half(out + 208, block.scale);
  return true;
}

}  // namespace couplet::formats
