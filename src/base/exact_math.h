#pragma once
// Elementary functions in double, made of + - * / fma, compares and bits alone: the same bits with every compiler and C
// library, which std::exp doesn't promise. The rope table and log probabilities use them (docs/numerics.md). Within
// 1 ulp where no range is given (exact_math_test.cpp holds the bounds); slower than the library's, not for inner loops.

namespace couplet {

double exact_exp(double x);                        // 0 below -745.2, infinity above 709.8
double exact_log(double x);                        // -infinity of 0, NaN of less
double exact_sin(double x);                        // NaN beyond 2^20 radians
double exact_cos(double x);                        // NaN beyond 2^20 radians
double exact_pow(double base, double exponent);    // base > 0 and finite, else NaN

}  // namespace couplet
