// Which level runs: the best that this machine has, or the one asked for by name.

#include <cstdlib>
#include <string>

#include "base/cpu_features.h"
#include "couplet/error.h"
#include "kernels/kernels.h"
#include "kernels/levels.h"

namespace couplet::kernels {
namespace {

struct Level {
  const KernelTable& (*table)();
  const char* name;
  const char* needs;
  bool (*runs)(const CpuFeatures&);
};

constexpr Level kLevels[] = {  // best first
    {amx::table, "amx", "AVX-512 VNNI, AMX-TILE and AMX-INT8, and tiles lent by the system",
     [](const CpuFeatures& cpu) { return cpu.amx_int8; }},
    {avx512::table, "avx512", "AVX-512 F, BW, VL, DQ and VNNI", [](const CpuFeatures& cpu) { return cpu.avx512; }},
    {avx2_vnni::table, "avx2_vnni", "AVX-VNNI, AVX2, FMA and F16C", [](const CpuFeatures& cpu) { return cpu.avx_vnni; }},
    {avx2::table, "avx2", "AVX2, FMA and F16C", [](const CpuFeatures& cpu) { return cpu.avx2; }},
    {reference::table, "reference", "", [](const CpuFeatures&) { return true; }},
};

}  // namespace

const KernelTable& select_kernels(std::string_view forced) {
  if (forced.empty()) {
    if (const char* named = std::getenv("COUPLET_KERNELS")) forced = named;
  }
  for (const Level& level : kLevels) {
    const bool runs = level.runs(cpu_features());
    if (forced.empty() && runs) return level.table();
    if (forced != level.name) continue;
    if (runs) return level.table();
    throw Error(ErrorKind::unsupported, "[kernels] level \"" + std::string(forced) + "\": expected a processor with " +
                                            level.needs + ", got " + cpu_name());
  }
  throw Error(ErrorKind::usage,
              "[kernels] level: expected amx, avx512, avx2_vnni, avx2 or reference, got \"" + std::string(forced) + "\"");
}

int known_levels(LevelInfo levels[8]) {
  int count = 0;
  for (const Level& level : kLevels) levels[count++] = {level.name, level.needs, level.runs(cpu_features())};
  return count;
}

int runnable_levels(const KernelTable* tables[8]) {
  int count = 0;
  for (const Level& level : kLevels) {
    if (level.runs(cpu_features())) tables[count++] = &level.table();
  }
  return count;
}

}  // namespace couplet::kernels
