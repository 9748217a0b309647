#pragma once
// The packed layout of a quantized type (packed.h) as constants for templates. A part is 32 values of a panel; it has two
// sub-blocks where 16 values share a scale, else one. Nothing that runs: instruction set folders include this.

#include <utility>

#include "kernels/kernels.h"

namespace couplet::kernels {

// What the nibbles of these types stand for; of WeightType::coded a block says it itself. No `inline`: a level's objects
// keep their own.
constexpr std::int8_t kIq4Codes[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr std::int8_t kMxfp4Codes[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};  // doubled

constexpr bool is_one_of(WeightType type, auto... types) { return (... || (type == types)); }

template <WeightType kType>
struct PackedFormat {
  using enum WeightType;
  static constexpr bool kSuperBlocks = is_one_of(kType, q4_k, q5_k, q6_k, q2_k, q3_k, iq4_xs, coded);
  static constexpr bool kMinimum = is_one_of(kType, q4_1, q5_1, q4_k, q5_k, q2_k);
  static constexpr bool kFifthBit = is_one_of(kType, q5_0, q5_1, q5_k);
  static constexpr bool kTwoBits = is_one_of(kType, q2_k, q3_k);  // codes are not nibbles, but half of one
  static constexpr bool kLookedUp = is_one_of(kType, iq4_nl, iq4_xs, mxfp4, coded);  // a nibble stands for another code
  static constexpr bool kSigned = kType == q8_0 || kLookedUp;
  static constexpr int kOffset = kType == q4_0   ? 8  // stored code = code + kOffset
                                 : kType == q5_0 ? 16
                                 : kType == q6_k ? 32
                                 : kType == q3_k ? 4
                                                 : 0;
  static constexpr int kGreatestCode = kType == q8_0                    ? 128  // magnitude, with the offset on
                                       : is_one_of(kType, iq4_nl, iq4_xs) ? 127
                                       : is_one_of(kType, q6_k, coded)  ? 63
                                       : kFifthBit                      ? 31
                                       : kType == q3_k                  ? 7
                                       : kType == q2_k                  ? 3
                                                                        : 15;
  static constexpr int kSubBlocks = is_one_of(kType, q6_k, q2_k, q3_k, coded) ? 2 : 1;  // a part
  static constexpr int kSubBlockVectors = 8 / kSubBlocks;                               // of 4 values
  static constexpr int kParts = kSuperBlocks ? 8 : 1;                                   // a block
  // In a block's head: [16 rows] of d, of the minimum's; of a byte for each sub-block, or Q4_K's twelve; coded's codes.
  static constexpr int kScalesAt = kMinimum || kType == coded ? 64 : kType == mxfp4 ? 16 : 32;
  static constexpr bool kSignedScales = is_one_of(kType, q6_k, q3_k, iq4_xs, coded);
  static constexpr int kScaleBytes = is_one_of(kType, q4_k, q5_k) ? 12 * 16 : kSuperBlocks ? 16 * kParts * kSubBlocks : 0;
  static constexpr int kCodesAt = kScalesAt + kScaleBytes;
  static constexpr int kHeadBytes = kCodesAt + (kType == coded ? 16 : 0);
  static constexpr int kPartBytes = kType == q8_0   ? 512
                                    : kType == q6_k ? 384
                                    : kFifthBit     ? 320
                                    : kType == q3_k ? 192
                                    : kType == q2_k ? 128
                                                    : 256;
  static constexpr int kBlockBytes = kHeadBytes + kParts * kPartBytes;
  // A part as the kernels of many rows unpack it: 8 vectors of codes, then [16] floats: a scale for each sub-block, then a
  // minimum. At least three of them: an odd number of cache lines.
  static constexpr int kMinimumsAt = 16 * (8 + kSubBlocks);
  static constexpr int kUnpackedFloats = 16 * (8 + (kMinimum && kSubBlocks == 2 ? 4 : 3));
};
constexpr int kMostUnpackedFloats = 16 * 12;

struct ProductsByType {
  KernelTable::QuantizedProduct of[kNumWeightTypes];
};

// make.template operator()<type>() for every quantized type, null for the others.
consteval ProductsByType products_by_type(auto make) {
  constexpr auto one = []<int kIndex>(auto maker) -> KernelTable::QuantizedProduct {
    constexpr auto kType = static_cast<WeightType>(kIndex);
    if constexpr (is_quantized(kType)) return maker.template operator()<kType>();
    return nullptr;
  };
  return [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) {
    return ProductsByType{{one.template operator()<kIndex>(make)...}};
  }(std::make_integer_sequence<int, kNumWeightTypes>());
}

}  // namespace couplet::kernels
