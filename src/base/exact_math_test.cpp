// exact_math against the C library's long double, which has 11 bits more: the bounds that docs/numerics.md states.

#include "base/exact_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

namespace couplet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
static_assert(std::numeric_limits<long double>::digits >= 64, "the bounds below need a finer yardstick than double");

// Distance in units of the last place of the double nearest to `exact`.
double ulps(double got, long double exact) {
  const double nearest = std::abs(static_cast<double>(exact));
  const double unit = std::nextafter(nearest, kInfinity) - nearest;
  return static_cast<double>(std::abs(got - exact) / unit);
}

class ExactMath : public ::testing::Test {
 protected:
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
  std::mt19937_64 engine_{42};
};

TEST_F(ExactMath, ExpIsWithinOneUlp) {
  double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    const double reach = i % 4 == 0 ? 700 : i % 4 == 1 ? 20 : i % 4 == 2 ? 1 : 1e-3, x = uniform(-reach, reach);
    worst = std::max(worst, ulps(exact_exp(x), std::exp(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 0.65);
}

TEST_F(ExactMath, ExpAtItsEdges) {
  EXPECT_EQ(exact_exp(0.0), 1.0);
  EXPECT_EQ(exact_exp(-0.0), 1.0);
  EXPECT_EQ(exact_exp(5e-324), 1.0);
  EXPECT_EQ(exact_exp(709.9), kInfinity);
  EXPECT_EQ(exact_exp(kInfinity), kInfinity);
  EXPECT_LT(exact_exp(709.7), kInfinity);
  EXPECT_EQ(exact_exp(-746.0), 0.0);
  EXPECT_EQ(exact_exp(-kInfinity), 0.0);
  EXPECT_GT(exact_exp(-745.0), 0.0);
  EXPECT_NEAR(exact_exp(-720.0), std::exp(-720.0), 1e-323);  // a subnormal
  EXPECT_TRUE(std::isnan(exact_exp(NAN)));
}

TEST_F(ExactMath, LogIsWithinOneUlp) {
  double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    const double x = i % 3 == 0   ? uniform(0, 4)
                     : i % 3 == 1 ? 1 + uniform(-1e-3, 1e-3)
                                  : std::ldexp(uniform(1, 2), static_cast<int>(uniform(-1070, 1020)));
    worst = std::max(worst, ulps(exact_log(x), std::log(static_cast<long double>(x))));
  }
  EXPECT_LT(worst, 0.6);
}

TEST_F(ExactMath, LogAtItsEdges) {
  EXPECT_EQ(exact_log(1.0), 0.0);
  EXPECT_EQ(exact_log(0.0), -kInfinity);
  EXPECT_EQ(exact_log(-0.0), -kInfinity);
  EXPECT_EQ(exact_log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exact_log(-1.0)));
  EXPECT_TRUE(std::isnan(exact_log(NAN)));
  EXPECT_LT(ulps(exact_log(5e-324), std::log(static_cast<long double>(5e-324))), 0.6);
  EXPECT_LT(ulps(exact_log(1.7e308), std::log(static_cast<long double>(1.7e308))), 0.6);
}

TEST_F(ExactMath, SinAndCosAreWithinOneUlpUpToAMillion) {
  double worst_sin = 0, worst_cos = 0;
  const auto check = [&](double x) {
    worst_sin = std::max(worst_sin, ulps(exact_sin(x), std::sin(static_cast<long double>(x))));
    worst_cos = std::max(worst_cos, ulps(exact_cos(x), std::cos(static_cast<long double>(x))));
  };
  for (int i = 0; i < 200000; ++i) {
    check(uniform(-1, 1));
    check(uniform(-100, 100));
    check(uniform(-1e6, 1e6));
    check(static_cast<double>(i * 5));  // rope's fastest pair: whole radians
  }
  for (int n = 1; n < 600000; n += 7) check(n * M_PI_2);  // where the reduction cancels most
  EXPECT_LT(worst_sin, 0.75);
  EXPECT_LT(worst_cos, 0.75);
}

TEST_F(ExactMath, SinAndCosAtTheirEdges) {
  EXPECT_EQ(exact_sin(0.0), 0.0);
  EXPECT_TRUE(std::signbit(exact_sin(-0.0)));
  EXPECT_EQ(exact_cos(0.0), 1.0);
  EXPECT_EQ(exact_sin(1e-300), 1e-300);
  EXPECT_EQ(exact_sin(-3.0), -exact_sin(3.0));
  EXPECT_EQ(exact_cos(-3.0), exact_cos(3.0));
  EXPECT_FALSE(std::isnan(exact_sin(0x1p20)));
  for (const double x : {std::nextafter(0x1p20, 1e9), 1e300, kInfinity, -kInfinity, double{NAN}}) {
    EXPECT_TRUE(std::isnan(exact_sin(x))) << x;
    EXPECT_TRUE(std::isnan(exact_cos(x))) << x;
  }
}

TEST_F(ExactMath, PowIsWithinOneUlp) {
  double worst = 0;
  for (int i = 0; i < 200000; ++i) {
    const double base = std::exp(uniform(-20, 20)), exponent = uniform(-30, 30);
    worst = std::max(worst, ulps(exact_pow(base, exponent),
                                 std::pow(static_cast<long double>(base), static_cast<long double>(exponent))));
  }
  for (const double theta : {1e4, 1e5, 5e5, 1e6}) {
    for (int i = 0; i < 256; ++i) {
      const double exponent = -2.0 * i / 256;
      worst = std::max(worst, ulps(exact_pow(theta, exponent),
                                   std::pow(static_cast<long double>(theta), static_cast<long double>(exponent))));
    }
  }
  EXPECT_LT(worst, 1);
}

TEST_F(ExactMath, PowAtItsEdges) {
  EXPECT_EQ(exact_pow(7.0, 0.0), 1.0);
  EXPECT_EQ(exact_pow(1.0, 1e300), 1.0);
  EXPECT_EQ(exact_pow(2.0, 10.0), 1024.0);
  EXPECT_EQ(exact_pow(10.0, 400.0), kInfinity);
  EXPECT_EQ(exact_pow(10.0, -400.0), 0.0);
  EXPECT_EQ(exact_pow(2.0, 1e308), kInfinity);
  EXPECT_EQ(exact_pow(2.0, -1e308), 0.0);
  EXPECT_EQ(exact_pow(2.0, kInfinity), kInfinity);
  for (const double base : {0.0, -1.0, kInfinity, double{NAN}}) EXPECT_TRUE(std::isnan(exact_pow(base, 2.0))) << base;
  EXPECT_TRUE(std::isnan(exact_pow(2.0, NAN)));
}

// The bits themselves: another compiler, flag or library that changes one of them breaks the contract.
TEST_F(ExactMath, TheBitsAreFixed) {
  std::uint64_t hash = 14695981039346656037u;
  const auto take = [&](double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 1099511628211u;
  };
  for (int i = 1; i < 20000; ++i) {
    const double x = i * 0.37;
    take(exact_exp(x * 0.09 - 300));
    take(exact_log(x));
    take(exact_sin(x * 71));
    take(exact_cos(x * 71));
    take(exact_pow(x, 1 / x - 0.75));
  }
  EXPECT_EQ(hash, 13031488712461272540u);
}

}  // namespace
}  // namespace couplet
