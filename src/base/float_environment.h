#pragma once
// The processor's floating-point settings, which would otherwise be the caller's: part of what decides a bit.

#include <cstdint>

namespace couplet {

// Round to nearest, no flushing of subnormals, exceptions masked (docs/numerics.md, rule 1), for the time it lives.
class StandardFloats {
 public:
  StandardFloats();
  ~StandardFloats();
  StandardFloats(const StandardFloats&) = delete;
  StandardFloats& operator=(const StandardFloats&) = delete;

 private:
  std::uint32_t saved_;
};

}  // namespace couplet
