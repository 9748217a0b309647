#pragma once
// Our own faults. A failed check throws Fault, which only the apps catch: no file and no request may reach one.

#include <stdexcept>

namespace couplet {

class Fault : public std::logic_error {
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace couplet

#define COUPLET_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::couplet::check_failed(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define COUPLET_ASSERT(condition) static_cast<void>(0)
#else
#define COUPLET_ASSERT(condition) COUPLET_CHECK(condition)
#endif
