#include "couplet/machine.h"

#include <gtest/gtest.h>

#include <cmath>

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

TEST(Machine, AnUnknownLevelIsAnError) { EXPECT_THROW(measure_peaks("sse9", 1, 1000), Error); }

}  // namespace
}  // namespace couplet
