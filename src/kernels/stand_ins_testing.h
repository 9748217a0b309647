#pragma once
// Stand-ins for the levels that few machines run: the same sources with the other encoding of AVX-VNNI's instruction, and
// with AMX tiles in plain C++ (docs/adr/0007). They need AVX-512 VNNI, and differ from the levels they stand for in their
// products alone.

#include <vector>

#include "base/cpu_features.h"
#include "kernels/kernel_testing.h"

namespace couplet::kernels {
namespace avx2_vnni_evex {
const KernelTable& table();
}
namespace amx_emulated {
const KernelTable& table();
}

namespace testing {

inline std::vector<const KernelTable*> stand_ins() {
  if (!cpu_features().avx512) return {};
  return {&avx2_vnni_evex::table(), &amx_emulated::table()};
}

inline std::vector<const KernelTable*> levels_and_stand_ins() {
  std::vector<const KernelTable*> levels = stand_ins();
  for (const KernelTable* level : all_levels()) levels.push_back(level);
  return levels;
}

}  // namespace testing
}  // namespace couplet::kernels
