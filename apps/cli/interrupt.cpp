#include "interrupt.h"

#include <unistd.h>

#include <csignal>

namespace couplet::cli {
namespace {

volatile std::sig_atomic_t num_scopes = 0;
volatile std::sig_atomic_t num_shields = 0;
volatile std::sig_atomic_t was_interrupted = 0;

void on_interrupt(int) {
  const bool ends = num_scopes == 0 || was_interrupted != 0;
  if (ends && num_shields == 0) ::_exit(kInterruptedStatus);
  was_interrupted = 1;
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action{};
  if (::sigaction(SIGINT, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = on_interrupt;  // without SA_RESTART: a blocked read returns
  ::sigaction(SIGINT, &action, nullptr);
}

InterruptScope::InterruptScope() {
  if (num_scopes == 0) was_interrupted = 0;
  num_scopes = num_scopes + 1;
}
InterruptScope::~InterruptScope() { num_scopes = num_scopes - 1; }
bool InterruptScope::interrupted() { return was_interrupted != 0; }

InterruptShield::InterruptShield() { num_shields = num_shields + 1; }
InterruptShield::~InterruptShield() { num_shields = num_shields - 1; }

}  // namespace couplet::cli
