#include "base/check.h"

#include <string>

namespace couplet {

void check_failed(const char* condition, const char* file, int line) {
  throw Fault(std::string(file) + ":" + std::to_string(line) + ": internal check failed: " + condition);
}

}  // namespace couplet
