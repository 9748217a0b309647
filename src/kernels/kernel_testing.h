#pragma once
// What every test needs that runs kernels: the levels that this machine runs, reproducible random numbers, aligned buffers
// and a comparison of bits. Levels are compared with `reference` by their bits, without tolerance.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include "kernels/kernels.h"

namespace couplet::kernels::testing {

// The levels of this machine, reference last.
inline std::vector<const KernelTable*> levels_of_this_machine() {
  const KernelTable* tables[8];
  const int count = runnable_levels(tables);
  return {tables, tables + count};
}
// Set by stand_ins_test.cpp, for the tests beside it: stand-ins for levels of other machines.
inline std::vector<const KernelTable*>& stand_ins() {
  static std::vector<const KernelTable*> tables;
  return tables;
}
// Every level to compare, reference last.
inline std::vector<const KernelTable*> all_levels() {
  std::vector<const KernelTable*> levels = stand_ins();
  for (const KernelTable* level : levels_of_this_machine()) levels.push_back(level);
  return levels;
}
inline const KernelTable& reference_level() { return select_kernels("reference"); }

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint32_t bits() { return static_cast<std::uint32_t>(engine_() >> 32); }
  int below(int n) { return static_cast<int>(bits() % static_cast<std::uint32_t>(n)); }
  float uniform(float low, float high) { return low + (high - low) * static_cast<float>(bits()) * 0x1p-32f; }
  std::vector<float> floats(std::size_t count, float low = -1, float high = 1) {
    std::vector<float> values(count);
    for (float& value : values) value = uniform(low, high);
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

// A 64-byte aligned array, every byte 0xff (floats: NaN), so that what a kernel should not read spoils the result.
template <class T>
class Aligned {
 public:
  explicit Aligned(std::size_t count) : count_(count), data_(static_cast<T*>(::operator new(bytes(), kAlign))) {
    std::memset(static_cast<void*>(data_.get()), 0xff, bytes());
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }
  std::size_t size() const { return count_; }

 private:
  static constexpr std::align_val_t kAlign{64};
  struct Free {
    void operator()(T* p) const { ::operator delete(p, kAlign); }
  };
  std::size_t bytes() const { return (count_ > 0 ? count_ : 1) * sizeof(T); }

  std::size_t count_;
  std::unique_ptr<T, Free> data_;
};

// Equal bit patterns; says where the first difference is.
template <class T>
::testing::AssertionResult same_bits(const T* got, const T* expected, std::size_t count) {
  if (std::memcmp(got, expected, count * sizeof(T)) == 0) return ::testing::AssertionSuccess();
  std::size_t i = 0;
  while (std::memcmp(got + i, expected + i, sizeof(T)) == 0) ++i;
  return ::testing::AssertionFailure() << "element " << i << " of " << count << " is " << +got[i] << ", expected "
                                       << +expected[i];
}

}  // namespace couplet::kernels::testing
