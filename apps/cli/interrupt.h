#pragma once
// Ctrl-C. While a reply is made it asks for an end after the running step; at any other time, or when pressed
// again, it ends the program at once with status 130, unless a shield stands. Where Ctrl-C was ignored when the
// program began (`nohup`, a job in the background), it stays so.

namespace couplet::cli {

inline constexpr int kInterruptedStatus = 130;

void install_interrupt_handler();

// While one exists, Ctrl-C only sets the flag; the outermost one begins with the flag down.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  static bool interrupted();
};

// While one exists, Ctrl-C never ends the program, however often it is pressed.
class InterruptShield {
 public:
  InterruptShield();
  ~InterruptShield();
  InterruptShield(const InterruptShield&) = delete;
  InterruptShield& operator=(const InterruptShield&) = delete;
};

}  // namespace couplet::cli
