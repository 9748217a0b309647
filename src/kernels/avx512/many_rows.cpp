// Rule 4 for many rows: two panels (32 outputs) are unpacked once, then tiles of up to kTileRows rows run over them with
// all accumulators in registers.

#include "kernels/avx512/few_rows.h"
#include "kernels/avx512/product_kernels.h"
#include "kernels/avx512/unpack.h"
#include "kernels/scaled_sum.h"

namespace couplet::kernels::avx512 {
namespace {

// Of 32 registers a tile takes 2 accumulators and 2 (two planes: 4) integer sums a row, and 2 weights.
constexpr int kTileRows = 6;
constexpr int kTileRowsTwoPlanes = 4;
// Up to here reading the packed panel again for every tile is no slower: 32 rows of Q4_1 by 10 %, of Q4_K and Q6_K even.
constexpr int kFewRows = 32;

template <WeightType kType>
void unpack_panel(const std::byte* block, int cols, float* out) {
  using Type = Unpack<kType>;
  for (int k = 0; k < cols; block += Type::kBlockBytes) {
    for (int part = 0; part < Type::kParts; ++part, k += 32, out += Type::kUnpackedFloats) {
      __m512i codes[8];
      Type::codes(block, part, codes);
      for (int j = 0; j < 8; ++j) _mm512_store_si512(out + 16 * j, codes[j]);
      for (int sub = 0; sub < Type::kSubBlocks; ++sub) {
        const int in_block = part * Type::kSubBlocks + sub;
        _mm512_store_ps(out + 128 + 16 * sub, Type::dw(block, in_block));
        if constexpr (Type::kMinimum) _mm512_store_ps(out + Type::kMinimumsAt + 16 * sub, Type::mw(block, in_block));
      }
    }
  }
}

struct Rows {  // of activations, from the tile's first on
  const QuantizedRows& x;
  std::ptrdiff_t first;

  std::ptrdiff_t code(int row, std::ptrdiff_t k) const { return (first + row) * x.code_stride + k; }
  std::ptrdiff_t block(int row, std::ptrdiff_t part) const { return (first + row) * (x.cols / kActivationBlock) + part; }
};

template <WeightType kType, bool kTwoPlanes, int kRows>
struct Tile {
  using Type = Unpack<kType>;
  static constexpr int kPlanes = kTwoPlanes ? 2 : 1;

  __m512 acc[kRows][2];

  // One sub-block's chain step for every row and both panels.
  inline __attribute__((always_inline)) void add_sub_block(const float* const panels[2], const Rows& rows,
                                                           std::ptrdiff_t part, int sub) {
    __m512i dots[kRows][2][kPlanes];
#pragma GCC unroll 6
    for (int row = 0; row < kRows; ++row) {
      const std::ptrdiff_t sums = 2 * rows.block(row, part);
      dots[row][0][0] = dots[row][1][0] = Type::start(rows.x.sum_hi + sums, sub);
      if constexpr (kTwoPlanes) dots[row][0][1] = dots[row][1][1] = Type::start(rows.x.sum_lo + sums, sub);
    }
#pragma GCC unroll 8
    for (int i = 0; i < Type::kSubBlockVectors; ++i) {
      const int j = sub * Type::kSubBlockVectors + i;
      const __m512i w0 = _mm512_load_si512(panels[0] + 16 * j), w1 = _mm512_load_si512(panels[1] + 16 * j);
#pragma GCC unroll 6
      for (int row = 0; row < kRows; ++row) {
        const std::ptrdiff_t code = rows.code(row, part * 32 + 4 * j);
        const __m512i hi = broadcast_word(rows.x.hi + code);
        dots[row][0][0] = _mm512_dpbusd_epi32(dots[row][0][0], w0, hi);
        dots[row][1][0] = _mm512_dpbusd_epi32(dots[row][1][0], w1, hi);
        if constexpr (!kTwoPlanes) continue;
        const __m512i lo = broadcast_word(rows.x.lo + code);
        dots[row][0][kPlanes - 1] = _mm512_dpbusd_epi32(dots[row][0][kPlanes - 1], w0, lo);
        dots[row][1][kPlanes - 1] = _mm512_dpbusd_epi32(dots[row][1][kPlanes - 1], w1, lo);
      }
    }
#pragma GCC unroll 2
    for (int panel = 0; panel < 2; ++panel) {
      const __m512 dw = _mm512_load_ps(panels[panel] + 128 + 16 * sub);
#pragma GCC unroll 6
      for (int row = 0; row < kRows; ++row) {
        __m512 f = _mm512_cvtepi32_ps(dots[row][panel][0]);
        if constexpr (kTwoPlanes) {
          f = _mm512_fmadd_ps(_mm512_set1_ps(254), f, _mm512_cvtepi32_ps(dots[row][panel][1]));
        }
        const __m512 da = _mm512_set1_ps(rows.x.scale[rows.block(row, part)]);
        acc[row][panel] = _mm512_fmadd_ps(_mm512_mul_ps(f, dw), da, acc[row][panel]);
      }
    }
  }

  inline __attribute__((always_inline)) void add_minimum(const float* const panels[2], const Rows& rows,
                                                         std::ptrdiff_t part, int sub) {
#pragma GCC unroll 2
    for (int panel = 0; panel < 2; ++panel) {
      const __m512 mw = _mm512_load_ps(panels[panel] + Type::kMinimumsAt + 16 * sub);
#pragma GCC unroll 6
      for (int row = 0; row < kRows; ++row) {
        const std::ptrdiff_t block = rows.block(row, part);
        const __m512 sa = _mm512_set1_ps(Type::kSubBlocks == 2 ? scaled_sum_of_16(rows.x, block, sub) : rows.x.scaled_sum[block]);
        acc[row][panel] = _mm512_fmadd_ps(mw, sa, acc[row][panel]);
      }
    }
  }

  inline __attribute__((always_inline)) void run(const float* first, const float* second, const Rows& rows,
                                                 std::ptrdiff_t begin, std::ptrdiff_t end) {
#pragma GCC unroll 6
    for (int row = 0; row < kRows; ++row) acc[row][0] = acc[row][1] = _mm512_setzero_ps();
    for (std::ptrdiff_t part = begin; part < end; ++part) {
      const float* const panels[2] = {first + part * Type::kUnpackedFloats, second + part * Type::kUnpackedFloats};
#pragma GCC unroll 2
      for (int sub = 0; sub < Type::kSubBlocks; ++sub) {
        add_sub_block(panels, rows, part, sub);
        if constexpr (Type::kMinimum) add_minimum(panels, rows, part, sub);
      }
    }
  }
};

struct Target {  // of one tile: `out` is row 0's first output of the two panels
  float* out;
  std::ptrdiff_t stride;
  int num_panels;
};

template <WeightType kType, bool kTwoPlanes, int kRows>
void tile(const float* first, const float* second, const Rows& rows, const Target& target) {
  const std::ptrdiff_t parts = rows.x.cols / 32;
  Tile<kType, kTwoPlanes, kRows> sum;
#ifdef COUPLET_SPLIT_K  // against the contract, to see the tests fail
  Tile<kType, kTwoPlanes, kRows> half;
  half.run(first, second, rows, 0, parts / 2);
  sum.run(first, second, rows, parts / 2, parts);
  for (int row = 0; row < kRows; ++row) {
    for (int panel = 0; panel < 2; ++panel) {
      sum.acc[row][panel] = _mm512_add_ps(half.acc[row][panel], sum.acc[row][panel]);
    }
  }
#else
  sum.run(first, second, rows, 0, parts);
#endif
#pragma GCC unroll 6
  for (int row = 0; row < kRows; ++row) {
    float* out = target.out + (rows.first + row) * target.stride;
    _mm512_storeu_ps(out, sum.acc[row][0]);
    if (target.num_panels == 2) _mm512_storeu_ps(out + kPanelRows, sum.acc[row][1]);
  }
}

// `next`, next_bytes: what is multiplied after this; each tile fetches its share from memory, which otherwise would rest
// while tiles run (32 rows of Q4_1: a quarter slower).
template <WeightType kType, bool kTwoPlanes>
void all_rows(const float* first, const float* second, const QuantizedRows& x, const Target& target, const std::byte* next,
              std::size_t next_bytes) {
  // Even tiles: more than kFewRows rows divide into tiles of kMost rows and tiles with one less.
  constexpr int kMost = kTwoPlanes ? kTileRowsTwoPlanes : kTileRows;
  static_assert(kFewRows >= (kMost - 1) * (kMost - 2), "a tile could need fewer rows");
  const std::size_t num_tiles = static_cast<std::size_t>((x.num_rows + kMost - 1) / kMost);
  const std::byte* const end = next + next_bytes;
  for (int row = 0; row < x.num_rows;) {
    const int left = x.num_rows - row, tiles = (left + kMost - 1) / kMost;
    const int rows = (left + tiles - 1) / tiles;
    for (const std::byte* stop = end - next_bytes * static_cast<std::size_t>(tiles - 1) / num_tiles; next < stop; next += 64) {
      _mm_prefetch(reinterpret_cast<const char*>(next), _MM_HINT_T1);
    }
    const auto run = rows == kMost ? tile<kType, kTwoPlanes, kMost> : tile<kType, kTwoPlanes, kMost - 1>;
    run(first, second, {x, row}, target);
    row += rows;
  }
}

template <WeightType kType>
void all_panels(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
                int out_stride, std::byte* scratch) {
  const std::ptrdiff_t panel_floats = static_cast<std::ptrdiff_t>(weights.cols / 32) * PackedFormat<kType>::kUnpackedFloats;
  float* unpacked = reinterpret_cast<float*>(scratch);
  for (int p = first_panel; p < first_panel + num_panels; p += 2) {
    const int panels = first_panel + num_panels - p < 2 ? 1 : 2;
    for (int i = 0; i < panels; ++i) {
      const std::byte* packed = weights.panels + static_cast<std::size_t>(p + i) * weights.panel_bytes;
      unpack_panel<kType>(packed, weights.cols, unpacked + i * panel_floats);
    }
    // A last single panel stands in for its missing neighbour.
    const float* second = unpacked + (panels - 1) * panel_floats;
    const Target target = {out + static_cast<std::ptrdiff_t>(p) * kPanelRows, out_stride, panels};
    const std::byte* next = weights.panels + static_cast<std::size_t>(p + 2) * weights.panel_bytes;
    (x.lo ? all_rows<kType, true> : all_rows<kType, false>)(unpacked, second, x, target, next, 2 * weights.panel_bytes);
  }
}

constexpr ProductsByType kByType = products_by_type([]<WeightType kType>() { return all_panels<kType>; });

}  // namespace

void many_rows(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
               int out_stride, std::byte* scratch) {
  if (x.num_rows <= kFewRows) return few_rows(weights, first_panel, num_panels, x, out, out_stride);
  kByType.of[static_cast<int>(weights.type)](weights, first_panel, num_panels, x, out, out_stride, scratch);
}

std::size_t product_scratch_bytes(int max_cols) {
  return static_cast<std::size_t>((max_cols + 31) / 32) * kMostUnpackedFloats * sizeof(float) * 2;
}

}  // namespace couplet::kernels::avx512
