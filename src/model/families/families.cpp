#include <array>

#include "model/families/family.h"

namespace couplet::model {

std::span<const Family* const> families() {
  static constexpr std::array<const Family*, 2> kAll = {&kLlama, &kGemma3};
  return kAll;
}

}  // namespace couplet::model
