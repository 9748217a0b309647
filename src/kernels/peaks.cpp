#include "kernels/peaks.h"

namespace couplet::kernels {
namespace reference {
extern const PeakLoops kPeakLoops;
}
namespace avx2 {
extern const PeakLoops kPeakLoops;
}
namespace avx512 {
extern const PeakLoops kPeakLoops;
}

const PeakLoops* peak_loops(std::string_view level) {
  if (level == "reference") return &reference::kPeakLoops;
  if (level == "avx2") return &avx2::kPeakLoops;
  if (level == "avx512") return &avx512::kPeakLoops;
  return nullptr;
}

}  // namespace couplet::kernels
