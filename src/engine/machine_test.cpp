#include "couplet/machine.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "couplet/error.h"

namespace couplet {
namespace {

TEST(Machine, PeaksAreMeasuredForEveryLevelAndSize) {
  for (const char* kernels : {"", "reference"}) {
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{3'000'001}}) {
      for (const int threads : {1, 3}) {
        const MachinePeaks peaks = measure_peaks(kernels, threads, bytes);
        for (const double figure :
             {peaks.int8_operations_per_s, peaks.float_operations_per_s, peaks.read_bytes_per_s}) {
          EXPECT_TRUE(std::isfinite(figure));
          EXPECT_GT(figure, 1e6);  // the slowest machine does more in a second
        }
      }
    }
  }
}

#if !defined(__SANITIZE_ADDRESS__)  // which takes terabytes of addresses for itself
// Exit status 0: the error that should come came. The limit can't be taken back, so it needs a process of its own.
[[noreturn]] void measure_without_room_for_stacks() {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  const rlim_t bytes = pages * 4096 + (64U << 20);
  const rlimit limit = {bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(2);
  try {
    measure_peaks("", 64, 1000);  // a stack takes megabytes
  } catch (const Error& error) {
    std::_Exit(error.kind() == ErrorKind::resource ? 0 : 3);
  }
  std::_Exit(4);
}

TEST(MachineDeathTest, TooFewThreadsAreAnError) {
  EXPECT_EXIT(measure_without_room_for_stacks(), testing::ExitedWithCode(0), "");
}
#endif

TEST(Machine, AnUnknownLevelIsAnError) { EXPECT_THROW(measure_peaks("sse9", 1, 1000), Error); }

}  // namespace
}  // namespace couplet
