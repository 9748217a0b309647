#pragma once
// What `inspect --machine` says: the processor, the levels of kernels that run on it and the one chosen, the
// CPUs and the memory that this process may use, and the peaks measured on them.

#include "options.h"

namespace couplet::cli {

// The peaks read as many bytes as the model's weights have, where one is named.
void inspect_machine(const CommonOptions& options);

}  // namespace couplet::cli
