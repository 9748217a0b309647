#include "base/cpu_features.h"

#include <cpuid.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace couplet {
namespace {

std::uint64_t saved_registers() {  // XCR0: the register files that the system saves on a switch
  std::uint32_t low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

// Linux lends the tiles, whose state is large, to a process that asks; once is enough, for all its threads. A kernel that
// does not know the call or will not lend them is a machine without tiles.
bool tiles_granted() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

CpuFeatures detect() {
  CpuFeatures found;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return found;
  const bool fma = (c & bit_FMA) && (c & bit_F16C);
  const std::uint64_t saved = saved_registers();
  const bool ymm = (saved & 0x6) == 0x6, zmm = (saved & 0xe6) == 0xe6, tiles = (saved & 0x60000) == 0x60000;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
  found.avx2 = ymm && fma && (b & bit_AVX2);
  constexpr unsigned kAvx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ;
  found.avx512 = found.avx2 && zmm && (b & kAvx512) == kAvx512 && (c & bit_AVX512VNNI);
  constexpr unsigned kAmx = (1U << 24) | (1U << 25);  // AMX-TILE, AMX-INT8
  found.amx_int8 = found.avx512 && tiles && (d & kAmx) == kAmx && tiles_granted();
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) found.avx_vnni = found.avx2 && (a & (1U << 4));
  return found;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

unsigned long long number_in(const std::string& path) {  // 0: no such file, or no number ("max")
  std::istringstream line(first_line(path));
  unsigned long long value = 0;
  return line >> value ? value : 0;
}

constexpr unsigned long long kNoLimit = ~0ULL;

// Calls visit(folder) for this process's cgroup and those above it; each may set a limit of its own. `controller` is
// "" for v2, else one of v1. Of a container that sees no names but its own, only the root's folder exists.
template <class Visit>
void for_each_cgroup(std::string_view controller, const Visit& visit) {
  std::string root = "/sys/fs/cgroup";
  if (!controller.empty()) root.append("/").append(controller);
  std::string path;
  std::ifstream groups("/proc/self/cgroup");  // "0::/path", and of v1 "7:cpu,cpuacct:/path"
  for (std::string number, controllers, where; std::getline(groups, number, ':') && std::getline(groups, controllers, ':') &&
                                               std::getline(groups, where);) {
    std::istringstream names(controllers);
    bool ours = controller.empty() && controllers.empty();
    for (std::string name; std::getline(names, name, ',');) ours |= name == controller;
    if (ours) path = where == "/" ? "" : where;
  }
  for (std::string folder = root + path; folder.size() >= root.size(); folder.resize(folder.rfind('/'))) visit(folder);
}

unsigned long long cgroup_room() {
  unsigned long long room = kNoLimit;
  for_each_cgroup("", [&](const std::string& folder) {
    const unsigned long long limit = number_in(folder + "/memory.max"), used = number_in(folder + "/memory.current");
    if (limit > 0) room = std::min(room, limit > used ? limit - used : 0);
  });
  return room;
}

// Under a limit on address space (ulimit -v), what is not mapped yet.
unsigned long long address_space_room() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  const auto used = number_in("/proc/self/statm") * static_cast<unsigned long long>(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

std::string cpu_name() {
  char brand[49] = {};
  unsigned words[4];
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    if (!__get_cpuid(0x80000002U + leaf, &words[0], &words[1], &words[2], &words[3])) return "unknown processor";
    std::memcpy(brand + leaf * 16, words, 16);
  }
  return brand;
}

int affinity_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  return sched_getaffinity(0, sizeof mask, &mask) == 0 ? std::max(1, CPU_COUNT(&mask)) : 1;
}

double quota_cpus() {
  double least = 0;
  const auto limit = [&](const std::string& quota_and_period) {  // in us: "50000 100000"; "max" or -1 is none
    std::istringstream line(quota_and_period);
    double quota = 0, period = 0;
    if (line >> quota >> period && quota > 0 && period > 0)
      least = least > 0 ? std::min(least, quota / period) : quota / period;
  };
  for_each_cgroup("", [&](const std::string& folder) { limit(first_line(folder + "/cpu.max")); });
  for_each_cgroup("cpu", [&](const std::string& folder) {
    limit(first_line(folder + "/cpu.cfs_quota_us") + " " + first_line(folder + "/cpu.cfs_period_us"));
  });
  return least;
}

int usable_cpus() {
  int count = affinity_cpus();
  const double quota = quota_cpus();
  if (quota > 0) count = std::min(count, std::max(1, static_cast<int>(std::ceil(quota))));
  return count;
}

unsigned long long available_memory_bytes() {
  unsigned long long available = 0;
  std::ifstream meminfo("/proc/meminfo");
  for (std::string key, unit; meminfo >> key;) {
    unsigned long long kib = 0;
    meminfo >> kib;
    std::getline(meminfo, unit);
    if (key == "MemAvailable:") available = kib * 1024;
  }
  return std::min({available, cgroup_room(), address_space_room()});
}

}  // namespace couplet
