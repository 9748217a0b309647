// Plain scalar loops: what the reference level's own way of computing can reach, not what the processor can.

#include "kernels/peaks.h"

namespace couplet::kernels::reference {
namespace {

constexpr int kChains = 8;  // independent sums, so that no chain waits for the one before

std::uint64_t int8_dots(std::uint64_t rounds, std::uint64_t* sink) {
  std::int32_t sums[kChains] = {};
  std::int8_t a = 3, b = 5;
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 8
    for (std::int32_t& sum : sums) {
      asm volatile("" : "+r"(a), "+r"(b));  // unknown to the compiler each time: no product can be kept
      sum += a * b;
    }
  }
  for (const std::int32_t sum : sums) *sink += static_cast<std::uint64_t>(sum);
  return rounds * kChains * 2;
}

std::uint64_t float_fmas(std::uint64_t rounds, std::uint64_t* sink) {
  float sums[kChains] = {};
  float a = 1.0001F, b = 0.5F;
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 8
    for (float& sum : sums) sum = sum * b + a;
  }
  for (const float sum : sums) *sink += static_cast<std::uint64_t>(sum);
  return rounds * kChains * 2;
}

void read(const std::byte* bytes, std::size_t count, std::uint64_t* sink) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(bytes);
  std::uint64_t sums[4] = {};
  for (std::size_t i = 0; i < count / sizeof *words; i += 4) {
#pragma GCC unroll 8
    for (std::size_t j = 0; j < 4; ++j) sums[j] += words[i + j];
  }
  *sink += sums[0] + sums[1] + sums[2] + sums[3];
}

}  // namespace

extern const PeakLoops kPeakLoops;
const PeakLoops kPeakLoops = {int8_dots, float_fmas, read};

}  // namespace couplet::kernels::reference
