#include "kernels/peaks.h"

namespace couplet::kernels {
namespace reference {
extern const PeakLoops kPeakLoops;
}
namespace avx2 {
extern const PeakLoops kPeakLoops;
}
namespace avx2_vnni {
std::uint64_t int8_dots(std::uint64_t rounds, std::uint64_t* sink);
}
namespace avx512 {
extern const PeakLoops kPeakLoops;
}
namespace amx {
std::uint64_t int8_dots(std::uint64_t rounds, std::uint64_t* sink);
}

const PeakLoops* peak_loops(std::string_view level) {
  // Floats and reads of these two are those of the level below.
  static const PeakLoops kAvx2Vnni = {avx2_vnni::int8_dots, avx2::kPeakLoops.float_fmas, avx2::kPeakLoops.read};
  static const PeakLoops kAmx = {amx::int8_dots, avx512::kPeakLoops.float_fmas, avx512::kPeakLoops.read};
  if (level == "reference") return &reference::kPeakLoops;
  if (level == "avx2") return &avx2::kPeakLoops;
  if (level == "avx2_vnni") return &kAvx2Vnni;
  if (level == "avx512") return &avx512::kPeakLoops;
  if (level == "amx") return &kAmx;
  return nullptr;
}

}  // namespace couplet::kernels
