#pragma once
// Ctrl-C. While a reply is made it asks for an end after the running step; at any other time, or when pressed
// again, it ends the program at once with status 130.

namespace couplet::cli {

inline constexpr int kInterruptedStatus = 130;

void install_interrupt_handler();

// While one exists, Ctrl-C only sets the flag.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  static bool interrupted();
};

}  // namespace couplet::cli
