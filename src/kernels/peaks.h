#pragma once
// What a level's instructions can do at best: loops that only compute, or only read. The engine's machine.cpp
// times them, so that bench and explain can say how near prefill and decode come to the machine's two limits.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace couplet::kernels {

struct PeakLoops {
  // Run `rounds` rounds; return the operations done, two a multiply-add. `sink` takes the result, so that no
  // compiler can leave the work out.
  std::uint64_t (*int8_dots)(std::uint64_t rounds, std::uint64_t* sink);
  std::uint64_t (*float_fmas)(std::uint64_t rounds, std::uint64_t* sink);
  // Reads every byte once; `bytes` is 64-byte aligned, `count` a multiple of 256.
  void (*read)(const std::byte* bytes, std::size_t count, std::uint64_t* sink);
};

// The loops of a level that select_kernels() gave; null for an unknown name.
const PeakLoops* peak_loops(std::string_view level);

}  // namespace couplet::kernels
