#pragma once
// What this machine can run: instruction sets as the processor and the system allow, and how many CPUs are ours.

#include <string>

namespace couplet {

struct CpuFeatures {
  bool avx2 = false;    // with FMA and F16C, and the system saves the registers
  bool avx512 = false;  // F, BW, VL, DQ and VNNI
  bool avx_vnni = false;
  bool amx_int8 = false;
};
const CpuFeatures& cpu_features();
std::string cpu_name();

// CPUs that the affinity mask and the cgroup quota (v1 and v2) let this process use, rounded up; at least 1.
int usable_cpus();

// Free memory that this process may take, in bytes: the least of MemAvailable and of what its cgroups and its own limit
// on address space leave.
unsigned long long available_memory_bytes();

}  // namespace couplet
