#include "retries.h"

#include <fmt/format.h>

#include <algorithm>

#include "couplet/error.h"

namespace couplet::cli {

void Retries::wait_after(const PassingFailure& failure) {
  constexpr std::uint64_t kLongestWaitS = 300, kLongestOwnWaitMs = 16'000, kFirstWaitMs = 500;
  if (failures_ >= most_)
    throw Error(ErrorKind::io, fmt::format("[pull] {}{}", failure.what, most_ > 0 ? fmt::format(" (tried {} times)", failures_ + 1) : ""));
  const std::uint64_t asked_s = failure.wait_s.value_or(0);
  if (asked_s > kLongestWaitS)
    throw Error(ErrorKind::io, fmt::format("[pull] {}, and asks to wait {} s: try again later", failure.what, asked_s));
  const std::uint64_t wait_ms = std::max(asked_s * 1000, std::min(kFirstWaitMs << std::min(failures_, 10), kLongestOwnWaitMs));
  ++failures_;
  say_(fmt::format("{}; trying again in {:.1f} s", failure.what, static_cast<double>(wait_ms) / 1e3));
  wait_for(wait_ms);
}

}  // namespace couplet::cli
