#include "interrupt.h"

#include <unistd.h>

#include <csignal>

namespace couplet::cli {
namespace {

volatile std::sig_atomic_t in_scope = 0;
volatile std::sig_atomic_t was_interrupted = 0;

void on_interrupt(int) {
  if (in_scope == 0 || was_interrupted != 0) ::_exit(kInterruptedStatus);
  was_interrupted = 1;
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;  // without SA_RESTART: a blocked read returns
  ::sigaction(SIGINT, &action, nullptr);
}

InterruptScope::InterruptScope() {
  was_interrupted = 0;
  in_scope = 1;
}
InterruptScope::~InterruptScope() { in_scope = 0; }
bool InterruptScope::interrupted() { return was_interrupted != 0; }

}  // namespace couplet::cli
