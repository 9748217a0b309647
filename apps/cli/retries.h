#pragma once
// Tries again what failed for a reason that may pass, a few times and after longer and longer waits.

#include <functional>
#include <string>

#include "http.h"

namespace couplet::cli {

class Retries {
 public:
  using Say = std::function<void(const std::string&)>;
  // At most so many in a row; `say` tells about each wait.
  Retries(int most, Say say) : most_(most), say_(std::move(say)) {}

  // Until `action` returns. Throws Error{io} where it failed too often, or a server wants too long a wait.
  template <class Action>
  void run(Action action) {
    for (;;) try {
        return action();
      } catch (const PassingFailure& failure) {
        wait_after(failure);
      }
  }
  void progressed() { failures_ = 0; }

 private:
  void wait_after(const PassingFailure& failure);

  int most_;
  Say say_;
  int failures_ = 0;
};

}  // namespace couplet::cli
