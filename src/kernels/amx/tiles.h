#pragma once
// The tile instructions that this level uses, as functions: the real ones, or in tests an emulation. A thread's tiles are
// unusable until configure() and after release().

#include <cstddef>

#include "kernels/amx/tile_shapes.h"

#if !defined(__AMX_INT8__)
#include "kernels/amx/emulated_tiles.h"
#else

namespace couplet::kernels::amx {
namespace {

// In assembler, because GCC 12's intrinsics don't tell the compiler which memory they read.

inline __attribute__((always_inline)) void configure(const TileShapes& shapes) {
  asm volatile("ldtilecfg %0" ::"m"(shapes));
}

inline __attribute__((always_inline)) void release() { asm volatile("tilerelease"); }

// Row i of the tile lies at p + i * stride bytes.
template <int kTile>
inline __attribute__((always_inline)) void load(const void* p, std::ptrdiff_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "i"(kTile) : "memory");
}

template <int kTile>
inline __attribute__((always_inline)) void store(void* p, std::ptrdiff_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(stride), "i"(kTile) : "memory");
}

template <int kTile>
inline __attribute__((always_inline)) void zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}

// sum[m][n] += the dot product of rows[m] and column n of weights: signed bytes by fours of consecutive k, row k / 4 of
// `weights` holding fours of every n.
template <int kSum, int kRows, int kWeights>
inline __attribute__((always_inline)) void add_dots() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kRows), "i"(kWeights));
}

}  // namespace
}  // namespace couplet::kernels::amx

#endif
