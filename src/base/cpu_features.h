#pragma once
// What this machine can run: instruction sets as the processor and the system allow, and how many CPUs are ours.

#include <string>

namespace couplet {

struct CpuFeatures {
  bool avx2 = false;    // with FMA and F16C, and the system saves the registers
  bool avx512 = false;  // F, BW, VL, DQ and VNNI
  bool avx_vnni = false;  // with avx2
  bool amx_int8 = false;  // with avx512, and the system lets this process use the tiles
};
const CpuFeatures& cpu_features();
std::string cpu_name();

// CPUs that this process may be put on.
int affinity_cpus();
// The CPU time that its cgroups (v1 and v2) allow, in CPUs: 0.5 is half of one. 0: no quota.
double quota_cpus();
// What both leave, rounded up; at least 1.
int usable_cpus();

// Free memory that this process may take, in bytes: the least of MemAvailable and of what its cgroups and its own limit
// on address space leave.
unsigned long long available_memory_bytes();

}  // namespace couplet
