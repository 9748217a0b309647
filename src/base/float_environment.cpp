#include "base/float_environment.h"

namespace couplet {
namespace {

constexpr std::uint32_t kStandardControl = 0x1f80;

std::uint32_t control_word() {
  std::uint32_t word = 0;
  __asm__ volatile("stmxcsr %0" : "=m"(word));
  return word;
}

void set_control_word(std::uint32_t word) { __asm__ volatile("ldmxcsr %0" : : "m"(word)); }

}  // namespace

StandardFloats::StandardFloats() : saved_(control_word()) { set_control_word(kStandardControl); }
StandardFloats::~StandardFloats() { set_control_word(saved_); }

}  // namespace couplet
