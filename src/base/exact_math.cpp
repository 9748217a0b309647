#include "base/exact_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace couplet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// A sum with 1.5 * 2^52 has no room for a fraction: it rounds to the nearest integer, ties to even.
constexpr double kRounder = 0x1.8p52;

double nearest(double x) { return (x + kRounder) - kRounder; }

double power_of_two(int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52); }

// A value and what its rounding lost: hi + lo, |lo| at most half an ulp of hi.
struct Pair {
  double hi;
  double lo;
};

Pair exact_sum(double a, double b) {
  const double sum = a + b, b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

Pair exact_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

template <int N>
double polynomial(double x, const double (&coefficients)[N]) {  // from the highest power to x^0
  double sum = coefficients[0];
  for (int i = 1; i < N; ++i) sum = std::fma(sum, x, coefficients[i]);
  return sum;
}

// exp(x.hi + x.lo) = 2^n * exp(r), |r| <= ln 2 / 2.
double exp_of(Pair x) {
  if (!(x.hi > -746)) return x.hi != x.hi ? kNan : 0;
  if (x.hi > 710) return kInfinity;
  const double n = nearest(x.hi * 0x1.71547652b82fep0);
  const double high = std::fma(n, -0x1.62e42fefa39efp-1, x.hi);  // exact
  const Pair r = exact_sum(high, std::fma(n, -0x1.abc9e3b39803fp-56, x.lo));
  static constexpr double kTaylor[] = {1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880,
                                       1.0 / 40320,      1.0 / 5040,      1.0 / 720,      1.0 / 120,     1.0 / 24,
                                       1.0 / 6,          1.0 / 2};
  const double curve = polynomial(r.hi, kTaylor) * (r.hi * r.hi);
  const Pair sum = exact_sum(1.0, r.hi);
  const double result = sum.hi + (curve + (sum.lo + std::fma(r.lo, r.hi, r.lo)));
  const int exponent = static_cast<int>(n), half = exponent / 2;  // in two steps: 2^n alone may leave the range
  return result * power_of_two(half) * power_of_two(exponent - half);
}

// log(x) for finite x > 0: x = 2^k * m, m around 1, log m = 2 atanh(s), s = (m - 1) / (m + 1).
Pair log_of(double x) {
  int k = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    k = -54;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  k += static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
  if (m > 0x1.6a09e667f3bcdp0) {  // sqrt 2
    m *= 0.5;
    ++k;
  }
  const double numerator = m - 1;  // exact
  const Pair denominator = exact_sum(m, 1.0);
  const double s = numerator / denominator.hi;
  const double rest = std::fma(-s, denominator.lo, std::fma(-s, denominator.hi, numerator)) / denominator.hi;
  static constexpr double kAtanh[] = {2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13,
                                      2.0 / 11, 2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3};
  const double square = s * s;
  const double curve = polynomial(square, kAtanh) * square * s;
  const double power = k, whole = power * 0x1.62e42fefa38p-1;  // ln 2 to 42 bits: exact
  const Pair sum = exact_sum(whole, 2 * s);
  const double low = std::fma(power, 0x1.ef35793c76730p-45, sum.lo + std::fma(2.0, rest, curve));
  return exact_sum(sum.hi, low);
}

// x - n * pi / 2 for the nearest n; |x| <= 2^20.
Pair reduce(double x, int* quadrant) {
  const double n = nearest(x * 0x1.45f306dc9c883p-1);
  *quadrant = static_cast<int>(n) & 3;
  const double high = std::fma(n, -0x1.921fb54442d18p0, x);  // exact
  const Pair middle = exact_product(n, -0x1.1a62633145c07p-54);
  const Pair sum = exact_sum(high, middle.hi);
  return exact_sum(sum.hi, sum.lo + std::fma(n, 0x1.f1976b7ed8fbcp-110, middle.lo));
}

double sin_near_zero(Pair r) {
  static constexpr double kTaylor[] = {-1.0 / 121645100408832000, 1.0 / 355687428096000, -1.0 / 1307674368000,
                                       1.0 / 6227020800,          -1.0 / 39916800,       1.0 / 362880,
                                       -1.0 / 5040,               1.0 / 120,             -1.0 / 6};
  const double square = r.hi * r.hi;
  return r.hi + std::fma(polynomial(square, kTaylor) * square, r.hi, std::fma(square * -0.5, r.lo, r.lo));
}

double cos_near_zero(Pair r) {
  static constexpr double kTaylor[] = {-1.0 / 6402373705728000, 1.0 / 20922789888000, -1.0 / 87178291200,
                                       1.0 / 479001600,         -1.0 / 3628800,       1.0 / 40320,
                                       -1.0 / 720,              1.0 / 24};
  const Pair square = exact_product(r.hi, r.hi);
  const Pair sum = exact_sum(1.0, -0.5 * square.hi);
  const double curve = polynomial(square.hi, kTaylor) * (square.hi * square.hi);
  return sum.hi + (curve + (sum.lo - std::fma(r.hi, r.lo, 0.5 * square.lo)));
}

// Quadrant 0 of sin, 1 of cos: each next quadrant is the other one, or a change of sign.
double wave(double x, int shift) {
  if (!(x >= -0x1p20 && x <= 0x1p20)) return kNan;
  if (x == 0 && shift == 0) return x;
  int quadrant = 0;
  const Pair r = reduce(x, &quadrant);
  quadrant = (quadrant + shift) & 3;
  const double magnitude = quadrant % 2 == 0 ? sin_near_zero(r) : cos_near_zero(r);
  return quadrant < 2 ? magnitude : -magnitude;
}

}  // namespace

double exact_exp(double x) { return exp_of({x, 0}); }

double exact_log(double x) {
  if (x == 0) return -kInfinity;
  if (!(x > 0)) return kNan;
  if (x == kInfinity) return x;
  return log_of(x).hi;
}

double exact_sin(double x) { return wave(x, 0); }

double exact_cos(double x) { return wave(x, 1); }

double exact_pow(double base, double exponent) {
  if (!(base > 0 && base < kInfinity) || exponent != exponent) return kNan;
  const Pair log = log_of(base);
  Pair product = exact_product(exponent, log.hi);
  if (!(product.hi > -1e4 && product.hi < 1e4)) product.lo = 0;  // far out of range, where parts overflow
  return exp_of(exact_sum(product.hi, std::fma(exponent, log.lo, product.lo)));
}

}  // namespace couplet
