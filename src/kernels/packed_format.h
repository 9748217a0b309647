#pragma once
// The packed layout of a quantized type (packed.h) as constants for templates. A part is 32 values of a panel; a part of
// Q6_K has two sub-blocks, of any other type one. Constants only: instruction set folders include this.

#include "kernels/kernels.h"

namespace couplet::kernels {

template <WeightType kType>
struct PackedFormat {
  static constexpr bool kSuperBlocks =
      kType == WeightType::q4_k || kType == WeightType::q5_k || kType == WeightType::q6_k;
  static constexpr bool kMinimum = kType == WeightType::q4_1 || kType == WeightType::q5_1 ||
                                   kType == WeightType::q4_k || kType == WeightType::q5_k;
  static constexpr bool kFifthBit =
      kType == WeightType::q5_0 || kType == WeightType::q5_1 || kType == WeightType::q5_k;
  static constexpr int kOffset = kType == WeightType::q4_0   ? 8    // stored code = code + kOffset
                                 : kType == WeightType::q5_0 ? 16
                                 : kType == WeightType::q6_k ? 32
                                                             : 0;
  static constexpr int kSubBlocks = kType == WeightType::q6_k ? 2 : 1;  // a part
  static constexpr int kSubBlockVectors = 8 / kSubBlocks;               // of 4 values
  static constexpr int kParts = kSuperBlocks ? 8 : 1;                   // a block
  static constexpr int kScaleBytes = kType == WeightType::q6_k ? 16 * 16 : kSuperBlocks ? 12 * 16 : 0;
  static constexpr int kHeadBytes = (kMinimum ? 64 : 32) + kScaleBytes;
  static constexpr int kPartBytes = kType == WeightType::q8_0 ? 512
                                    : kType == WeightType::q6_k ? 384
                                    : kFifthBit                 ? 320
                                                                : 256;
  static constexpr int kBlockBytes = kHeadBytes + kParts * kPartBytes;
};

}  // namespace couplet::kernels
