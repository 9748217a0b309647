// Rule 4 for many rows on tiles. TDPBSSD gives the integer dot products of 12 rows with one panel (16 outputs), one
// sub-block of K deep, as deep as scales of the file allow; AVX-512 takes them from memory to the float chains, whose
// accumulators stay in registers: 12 rows by two panels, 24 of 32.
//
// What caps it, in cycles for 12 rows, two panels and 32 codes (12,288 multiply-adds) on a core with two 512-bit ports and
// two loads a cycle:
//   float chains   36 (cvt, mul, fma for each of 24 vectors), 48 where the type has a minimum (one more fma)
//   loads          34 to 40 (12 lines of codes, 16 of weights, 24 of sums, 12 scales, 12 sums of codes, 4 of weights')
//   stores         24 (the sums)
//   tiles          24 to 32 (two TDPBSSD of 12 to 16 cycles)
// So 256 to 340 multiply-adds a cycle of the 1,024 that whole tiles could do. vpdpbusd takes 96 cycles for the same dot
// products, 132 to 144 with its chains: about three times as long. By this reckoning, 60 % of the cap is 1.8 times the
// level avx512; nobody has measured it yet. 16 rows by one panel would load 30 % more, 16 by two have no registers left.

#include "kernels/amx/product_kernels.h"
#include "kernels/amx/tiles.h"
#include "kernels/avx512/product_kernels.h"
#include "kernels/avx512/unpack.h"
#include "kernels/scaled_sum.h"

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

using namespace avx512;  // unpack.h

constexpr int kTileRows = 12;
// Two panels of so many parts are unpacked at once: 22 KiB (Q2_K: 24), which stay in the L1 cache while all rows pass over them.
constexpr int kChunkParts = 16;
static_assert(kChunkParts % 8 == 0, "whole blocks of every type");

// Tile registers.
constexpr int sum_tile(int panel, int plane) { return 2 * panel + plane; }
constexpr int rows_tile(int plane) { return 4 + plane; }
constexpr int weights_tile(int panel) { return 6 + panel; }

// `depth` vectors of four codes at once.
constexpr TileShapes shapes_for(int depth) {
  TileShapes shapes;
  for (int tile = 0; tile < 4; ++tile) shapes.set(tile, kTileRows, 64);
  for (int plane = 0; plane < 2; ++plane) shapes.set(rows_tile(plane), kTileRows, 4 * depth);
  for (int panel = 0; panel < 2; ++panel) shapes.set(weights_tile(panel), depth, 64);
  return shapes;
}

// `parts` parts from `block` on, with signed codes: the offset is taken off here.
template <WeightType kType>
void unpack(const std::byte* block, std::ptrdiff_t parts, float* out) {
  using Type = Unpack<kType>;
  for (std::ptrdiff_t i = 0; i < parts; block += Type::kBlockBytes) {
    for (int part = 0; part < Type::kParts; ++part, ++i, out += Type::kUnpackedFloats) {
      __m512i codes[8];
      Type::codes(block, part, codes);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        const __m512i offset = _mm512_set1_epi8(static_cast<char>(Type::kOffset));
        _mm512_store_si512(out + 16 * j, Type::kOffset == 0 ? codes[j] : _mm512_sub_epi8(codes[j], offset));
      }
      for (int sub = 0; sub < Type::kSubBlocks; ++sub) {
        const int in_block = part * Type::kSubBlocks + sub;
        _mm512_store_ps(out + 128 + 16 * sub, Type::dw(block, in_block));
        if constexpr (Type::kMinimum) _mm512_store_ps(out + Type::kMinimumsAt + 16 * sub, Type::mw(block, in_block));
      }
    }
  }
}

// One float of every row, `stride` floats apart. Pointers to each third row: the two after it are at one and two strides,
// which an address can add by itself.
struct Column {
  const float* thirds[kTileRows / 3];
  std::ptrdiff_t stride;

  Column(const float* first, std::ptrdiff_t row_stride) : stride(row_stride) {
    for (int i = 0; i < kTileRows / 3; ++i) thirds[i] = first + 3 * i * stride;
  }
  inline __attribute__((always_inline)) __m512 broadcast(int row) const {
    return _mm512_set1_ps(thirds[row / 3][row % 3 * stride]);
  }
  inline __attribute__((always_inline)) void next() {
#pragma GCC unroll 4
    for (const float*& third : thirds) ++third;
  }
};

// The chains of 12 rows by two panels over one chunk.
template <WeightType kType, int kPlanes>
struct Tile {
  using Type = Unpack<kType>;
  using Sums = std::int32_t[kPlanes][2][kTileRows][16];

  const QuantizedRows& x;
  const float* panels[2];  // unpacked
  __m512 acc[kTileRows][2];

  // The integer dot products of one sub-block; `codes` is its first code of row 0.
  template <int kPlane>
  inline __attribute__((always_inline)) void dots_of_plane(const std::int8_t* codes, Sums& sums) const {
    load<rows_tile(kPlane)>(codes, x.code_stride);
    zero<sum_tile(0, kPlane)>();
    add_dots<sum_tile(0, kPlane), rows_tile(kPlane), weights_tile(0)>();
    store<sum_tile(0, kPlane)>(sums[kPlane][0], 64);
    zero<sum_tile(1, kPlane)>();
    add_dots<sum_tile(1, kPlane), rows_tile(kPlane), weights_tile(1)>();
    store<sum_tile(1, kPlane)>(sums[kPlane][1], 64);
  }

  inline __attribute__((always_inline)) void dots(std::ptrdiff_t sub_block, std::ptrdiff_t code, Sums& sums) const {
    const std::ptrdiff_t part = sub_block / Type::kSubBlocks, sub = sub_block % Type::kSubBlocks;
    const std::ptrdiff_t weights = part * Type::kUnpackedFloats + sub * Type::kSubBlockVectors * 16;
    load<weights_tile(0)>(panels[0] + weights, 64);
    load<weights_tile(1)>(panels[1] + weights, 64);
    dots_of_plane<0>(x.hi + code, sums);
    if constexpr (kPlanes == 2) dots_of_plane<1>(x.lo + code, sums);
  }

  inline __attribute__((always_inline)) __m512 load_floats(int panel, std::ptrdiff_t part, int at) const {
    return _mm512_load_ps(panels[panel] + part * Type::kUnpackedFloats + at);
  }

  // One step of all chains.
  inline __attribute__((always_inline)) void add(const Sums& sums, std::ptrdiff_t part, int sub, const Column& da) {
    const __m512 dw[2] = {load_floats(0, part, 128 + 16 * sub), load_floats(1, part, 128 + 16 * sub)};
#pragma GCC unroll 12
    for (int row = 0; row < kTileRows; ++row) {
      const __m512 scale = da.broadcast(row);
#pragma GCC unroll 2
      for (int panel = 0; panel < 2; ++panel) {
        __m512 f = _mm512_cvtepi32_ps(_mm512_load_si512(sums[0][panel][row]));
        if constexpr (kPlanes == 2) {
          const __m512 low = _mm512_cvtepi32_ps(_mm512_load_si512(sums[kPlanes - 1][panel][row]));
          f = _mm512_fmadd_ps(_mm512_set1_ps(254), f, low);
        }
        acc[row][panel] = _mm512_fmadd_ps(_mm512_mul_ps(f, dw[panel]), scale, acc[row][panel]);
      }
    }
  }

  // `block` is the part's of row 0, among all rows' blocks.
  inline __attribute__((always_inline)) void add_minimum(std::ptrdiff_t part, int sub, std::ptrdiff_t block, const Column& sa) {
    constexpr int kAt = Type::kMinimumsAt;
    const __m512 mw[2] = {load_floats(0, part, kAt + 16 * sub), load_floats(1, part, kAt + 16 * sub)};
#pragma GCC unroll 12
    for (int row = 0; row < kTileRows; ++row) {
      const std::ptrdiff_t of_row = block + row * (x.cols / kActivationBlock);
      const __m512 scaled_sum = Type::kSubBlocks == 2 ? _mm512_set1_ps(scaled_sum_of_16(x, of_row, sub)) : sa.broadcast(row);
#pragma GCC unroll 2
      for (int panel = 0; panel < 2; ++panel) acc[row][panel] = _mm512_fmadd_ps(mw[panel], scaled_sum, acc[row][panel]);
    }
  }

  // `parts` parts, which are those of the matrix from first_part on. The tiles are a sub-block ahead of the chains: the
  // two work at the same time, and the sums have left the store buffer when they are read.
  inline __attribute__((always_inline)) void run(std::ptrdiff_t row, std::ptrdiff_t first_part, std::ptrdiff_t parts) {
    constexpr int kValues = 32 / Type::kSubBlocks;
    alignas(64) Sums sums[2];
    const std::ptrdiff_t blocks = x.cols / kActivationBlock, end = parts * Type::kSubBlocks;
    const std::ptrdiff_t code = row * x.code_stride + first_part * 32;
    Column da(x.scale + row * blocks + first_part, blocks), sa(x.scaled_sum + row * blocks + first_part, blocks);
    dots(0, code, sums[0]);
    for (std::ptrdiff_t i = 0; i < end; ++i) {
      if (i + 1 < end) dots(i + 1, code + (i + 1) * kValues, sums[(i + 1) % 2]);
      const std::ptrdiff_t part = i / Type::kSubBlocks;
      const int sub = static_cast<int>(i % Type::kSubBlocks);
      add(sums[i % 2], part, sub, da);
      if constexpr (Type::kMinimum) add_minimum(part, sub, row * blocks + first_part + part, sa);
      if (sub + 1 < Type::kSubBlocks) continue;
      da.next();
      sa.next();
    }
  }
};

struct Target {  // of 12 rows: accumulators between chunks, results after the last
  float* out;
  std::ptrdiff_t stride;
  __mmask16 second;  // lanes of the second panel: all, or none where there is only one
};

template <WeightType kType, int kPlanes>
void tile(const QuantizedRows& x, const float* const panels[2], std::ptrdiff_t row, std::ptrdiff_t first_part,
          std::ptrdiff_t parts, const Target& target) {
  Tile<kType, kPlanes> sum = {x, {panels[0], panels[1]}, {}};
  if (first_part > 0) {
#pragma GCC unroll 12
    for (int i = 0; i < kTileRows; ++i) {
      sum.acc[i][0] = _mm512_loadu_ps(target.out + i * target.stride);
      sum.acc[i][1] = _mm512_maskz_loadu_ps(target.second, target.out + i * target.stride + kPanelRows);
    }
  }
  sum.run(row, first_part, parts);
#pragma GCC unroll 12
  for (int i = 0; i < kTileRows; ++i) {
    _mm512_storeu_ps(target.out + i * target.stride, sum.acc[i][0]);
    _mm512_mask_storeu_ps(target.out + i * target.stride + kPanelRows, target.second, sum.acc[i][1]);
  }
}

inline void prefetch(const std::byte* p, const std::byte* end) {
  for (; p < end; p += 64) _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
}

struct Panels {  // one panel, or two that follow each other
  const std::byte* first;
  std::size_t bytes;  // of one
  bool both;

  const std::byte* at(int i) const { return first + (both && i == 1 ? bytes : 0); }
  // Where part `part` begins, or the same panel of the next two.
  template <class Type>
  const std::byte* block(int i, std::ptrdiff_t part, std::ptrdiff_t parts) const {
    return part < parts ? at(i) + part / Type::kParts * Type::kBlockBytes : at(i) + 2 * bytes;
  }
};

// All rows over one or two panels; target.out is row 0's first output of them.
template <WeightType kType>
void two_panels(const Panels& packed, const QuantizedRows& x, float* unpacked, const Target& target) {
  using Type = Unpack<kType>;
  constexpr std::ptrdiff_t kChunkBytes = kChunkParts / Type::kParts * Type::kBlockBytes;
  const auto run = x.lo ? tile<kType, 2> : tile<kType, 1>;
  const float* const panels[2] = {unpacked, unpacked + kChunkParts * Type::kUnpackedFloats};
  const std::ptrdiff_t parts = x.cols / 32, tiles = (x.num_rows + kTileRows - 1) / kTileRows;
  // Rows that fill no tile form one with rows of the tile before. Its accumulators stand apart: those rows' own go on.
  alignas(64) float last[kTileRows][2 * kPanelRows];
  for (std::ptrdiff_t part = 0; part < parts; part += kChunkParts) {
    const std::ptrdiff_t count = parts - part < kChunkParts ? parts - part : kChunkParts;
    const std::byte* next[2];
    for (int i = 0; i < 2; ++i) {
      unpack<kType>(packed.block<Type>(i, part, parts), count, unpacked + i * kChunkParts * Type::kUnpackedFloats);
      next[i] = packed.block<Type>(i, part + count, parts);
    }
    for (std::ptrdiff_t i = 0; i < tiles; ++i) {
      // Each tile fetches its share of what is unpacked next, so that memory does not rest.
      for (const std::byte* p : next) prefetch(p + kChunkBytes * i / tiles, p + kChunkBytes * (i + 1) / tiles);
      const std::ptrdiff_t row = i * kTileRows;
      if (row + kTileRows <= x.num_rows) {
        run(x, panels, row, part, count, {target.out + row * target.stride, target.stride, target.second});
      } else {
        run(x, panels, x.num_rows - kTileRows, part, count, {last[0], 2 * kPanelRows, target.second});
      }
    }
  }
  for (std::ptrdiff_t row = x.num_rows / kTileRows * kTileRows; row < x.num_rows; ++row) {
    const float* from = last[row - x.num_rows + kTileRows];
    _mm512_storeu_ps(target.out + row * target.stride, _mm512_load_ps(from));
    const __m512 second = _mm512_load_ps(from + kPanelRows);
    _mm512_mask_storeu_ps(target.out + row * target.stride + kPanelRows, target.second, second);
  }
}

template <WeightType kType>
void all_panels(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
                int out_stride, std::byte* scratch) {
  static constexpr TileShapes kShapes = shapes_for(Unpack<kType>::kSubBlockVectors);
  // A thread's tiles are configured for this call alone: some hundred cycles of tens of thousands, and no thread keeps
  // 8 KiB of state for the system to save, nor tiles that its owner has configured for himself.
  configure(kShapes);
  for (std::ptrdiff_t p = first_panel; p < first_panel + num_panels; p += 2) {
    const bool both = first_panel + num_panels - p > 1;
    const Panels packed = {weights.panels + static_cast<std::size_t>(p) * weights.panel_bytes, weights.panel_bytes, both};
    const auto second = static_cast<__mmask16>(both ? 0xffff : 0);
    two_panels<kType>(packed, x, reinterpret_cast<float*>(scratch), {out + p * kPanelRows, out_stride, second});
  }
  release();
}

constexpr ProductsByType kByType = products_by_type([]<WeightType kType>() { return all_panels<kType>; });

}  // namespace

void many_rows(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
               int out_stride, std::byte* scratch) {
#ifdef COUPLET_SPLIT_K  // against the contract, as avx512 does it
  constexpr bool kSplit = true;
#else
  constexpr bool kSplit = false;
#endif
  const auto run = kSplit || x.num_rows < kTileRows ? avx512::many_rows : kByType.of[static_cast<int>(weights.type)];
  run(weights, first_panel, num_panels, x, out, out_stride, scratch);
}

std::size_t product_scratch_bytes(int max_cols) {
  constexpr std::size_t kChunkBytes = 2 * kChunkParts * kMostUnpackedFloats * sizeof(float);
  const std::size_t few_rows = avx512::product_scratch_bytes(max_cols);
  return few_rows > kChunkBytes ? few_rows : kChunkBytes;
}

}  // namespace couplet::kernels::COUPLET_LEVEL
