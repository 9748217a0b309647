#include "base/cpu_features.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace couplet {
namespace {

TEST(CpuFeatures, EachLevelIncludesTheOneBelow) {
  const CpuFeatures& found = cpu_features();
  EXPECT_TRUE(!found.avx512 || found.avx2);
  EXPECT_TRUE(!found.avx_vnni || found.avx2);
  EXPECT_TRUE(!found.amx_int8 || found.avx512);
  EXPECT_FALSE(cpu_name().empty());
}

TEST(UsableCpus, AreWhatAffinityAndQuotaLeave) {
  const double quota = quota_cpus();
  EXPECT_GE(quota, 0);
  EXPECT_LT(quota, 1e6) << "no quota taken for one";
  const int most = affinity_cpus();
  EXPECT_EQ(usable_cpus(), quota > 0 ? std::min(most, static_cast<int>(std::ceil(quota))) : most);
}

TEST(UsableCpus, FollowsTheAffinityMask) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(usable_cpus(), 1);
  EXPECT_LE(usable_cpus(), CPU_COUNT(&before));
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cpus(), 1);
  sched_setaffinity(0, sizeof before, &before);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they map terabytes
TEST(AvailableMemory, FollowsTheLimitOnAddressSpace) {
  const unsigned long long before = available_memory_bytes();
  EXPECT_GT(before, 0U);
  constexpr rlim_t kLimit = 512U << 20;
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{kLimit, kLimit};
    const bool set = setrlimit(RLIMIT_AS, &limit) == 0;
    _exit(set && available_memory_bytes() < kLimit ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace couplet
