#include "base/float_environment.h"

#include <gtest/gtest.h>

#include <cfenv>

namespace couplet {
namespace {

TEST(StandardFloats, SetsAndRestoresTheRoundingMode) {
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  {
    const StandardFloats floats;
    volatile float one = 1.0F, tiny = 1e-10F;
    const volatile float sum = one + tiny;
    EXPECT_EQ(sum, 1.0F);
  }
  volatile float one = 1.0F, tiny = 1e-10F;
  const volatile float sum = one + tiny;
  EXPECT_GT(sum, 1.0F);
  std::fesetround(FE_TONEAREST);
}

}  // namespace
}  // namespace couplet
