#include <array>

#include "model/families/family.h"

namespace couplet::model {

std::span<const Family* const> families() {
  static constexpr std::array kAll = {&kLlama,  &kMixtral, &kQwen2, &kQwen3, &kQwen3Moe, &kGemma,
                                      &kGemma2, &kGemma3,  &kPhi3,  &kOlmo2, &kGranite,  &kGptOss, &kDeepseek2};
  return kAll;
}

}  // namespace couplet::model
