#pragma once
// Options as they come from outside -> a refusal or nothing, before a request is queued. What passes here can't make
// distribution, sampler or stop matcher fail.

#include <cstddef>
#include <string>

#include "couplet/request.h"

namespace couplet::engine {

// Every byte of a reply is compared once with each stop text.
inline constexpr std::size_t kMaxStopBytes = 4096;
inline constexpr std::size_t kMaxStopTexts = 1024;

// "" where all is well, else one line: what was expected, what came. top_k 0 and -1 are off; one above the vocabulary's
// size keeps all.
std::string check(const SamplingOptions& sampling, const StopOptions& stop, int vocab_size);

}  // namespace couplet::engine
