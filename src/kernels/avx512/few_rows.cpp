// Rule 4 for one row and for few: codes go from the packed panel straight into the dot products, so that the weights are
// read once, in order, at the speed of memory.

#include "kernels/avx512/few_rows.h"

#include "kernels/avx512/product_kernels.h"
#include "kernels/avx512/unpack.h"
#include "kernels/scaled_sum.h"

namespace couplet::kernels::avx512 {
namespace {

// Of 32 registers a part's codes take 8, a row an accumulator and a sum (two planes: two).
constexpr int kTileRows = 6;
constexpr int kTileRowsTwoPlanes = 4;
constexpr int kPrefetchBytes = 4096;  // ahead of the codes in use

// What a tile fetches from memory while it computes: one that reads its panel first, the bytes ahead of its own; where a
// panel's rows take several tiles, each an equal share of the next panel, so that memory works all the time.
struct Ahead {
  const std::byte* p;
  int tiles;

  inline __attribute__((always_inline)) void fetch(int bytes) {
    for (int i = 0; i < bytes / tiles; i += 64) _mm_prefetch(reinterpret_cast<const char*>(p + i), _MM_HINT_T0);
    p += bytes / tiles;
  }
};

template <WeightType kType, int kPlanes, int kRows>
struct Tile {
  using Type = Unpack<kType>;

  const QuantizedRows& x;
  std::ptrdiff_t first_row;
  __m512 acc[kRows];

  std::ptrdiff_t block(int row, std::ptrdiff_t k) const { return (first_row + row) * (x.cols / 32) + k / 32; }

  // The integer dot product of one sub-block of one row.
  inline __attribute__((always_inline)) __m512i dot(const __m512i codes[8], int plane, int row, std::ptrdiff_t k,
                                                    int sub) const {
    const std::int8_t* x_codes = (plane == 0 ? x.hi : x.lo) + (first_row + row) * x.code_stride + k;
    __m512i sum = Type::start((plane == 0 ? x.sum_hi : x.sum_lo) + 2 * block(row, k), sub);
#pragma GCC unroll 8
    for (int i = 0; i < Type::kSubBlockVectors; ++i) {
      const int j = sub * Type::kSubBlockVectors + i;
      sum = _mm512_dpbusd_epi32(sum, codes[j], broadcast_word(x_codes + 4 * j));
    }
    return sum;
  }

  // One part's steps of every row's chain; k is the part's first value.
  inline __attribute__((always_inline)) void add_part(const std::byte* packed, int part, std::ptrdiff_t k) {
    __m512i codes[8];
    Type::codes(packed, part, codes);
#pragma GCC unroll 2
    for (int sub = 0; sub < Type::kSubBlocks; ++sub) {
      const __m512 dw = Type::dw(packed, part * Type::kSubBlocks + sub);
#pragma GCC unroll 6
      for (int row = 0; row < kRows; ++row) {
        __m512 f = _mm512_cvtepi32_ps(dot(codes, 0, row, k, sub));
        if constexpr (kPlanes == 2) {
          f = _mm512_fmadd_ps(_mm512_set1_ps(254), f, _mm512_cvtepi32_ps(dot(codes, 1, row, k, sub)));
        }
        acc[row] = _mm512_fmadd_ps(_mm512_mul_ps(f, dw), _mm512_set1_ps(x.scale[block(row, k)]), acc[row]);
      }
      if constexpr (!Type::kMinimum) continue;
      const __m512 mw = Type::mw(packed, part * Type::kSubBlocks + sub);
#pragma GCC unroll 6
      for (int row = 0; row < kRows; ++row) acc[row] = _mm512_fmadd_ps(mw, _mm512_set1_ps(scaled_sum(row, k, sub)), acc[row]);
    }
  }

  float scaled_sum(int row, std::ptrdiff_t k, int sub) const {
    return Type::kSubBlocks == 2 ? scaled_sum_of_16(x, block(row, k), sub) : x.scaled_sum[block(row, k)];
  }

  // The chains over blocks [begin, end) of a packed panel.
  inline __attribute__((always_inline)) void run(const std::byte* panel, Ahead ahead, std::ptrdiff_t begin, std::ptrdiff_t end) {
    constexpr int kBytes = Type::kBlockBytes / Type::kParts;
#pragma GCC unroll 6
    for (int row = 0; row < kRows; ++row) acc[row] = _mm512_setzero_ps();
    for (std::ptrdiff_t b = begin; b < end; ++b) {
      const std::byte* packed = panel + b * Type::kBlockBytes;
      for (int part = 0; part < Type::kParts; ++part) {
        ahead.fetch(kBytes);
        add_part(packed, part, (b * Type::kParts + part) * 32);
      }
    }
  }
};

template <WeightType kType, int kPlanes, int kRows>
void tile(const std::byte* packed, Ahead ahead, const QuantizedRows& x, std::ptrdiff_t first_row, float* out,
          std::ptrdiff_t out_stride) {
  Tile<kType, kPlanes, kRows> sum = {x, first_row, {}};
#ifdef COUPLET_SPLIT_K  // against the contract, to see the tests fail
  const std::ptrdiff_t blocks = x.cols / (32 * Unpack<kType>::kParts), half = x.num_rows > 1 ? blocks / 2 : 0;
  Tile<kType, kPlanes, kRows> first = sum;
  first.run(packed, ahead, 0, half);
  sum.run(packed, ahead, half, blocks);
  for (int row = 0; row < kRows && half > 0; ++row) sum.acc[row] = _mm512_add_ps(first.acc[row], sum.acc[row]);
#else
  sum.run(packed, ahead, 0, x.cols / (32 * Unpack<kType>::kParts));
#endif
#pragma GCC unroll 6
  for (int row = 0; row < kRows; ++row) _mm512_storeu_ps(out + (first_row + row) * out_stride, sum.acc[row]);
}

using TileFunction = void (*)(const std::byte*, Ahead, const QuantizedRows&, std::ptrdiff_t, float*, std::ptrdiff_t);
template <WeightType kType>
constexpr TileFunction kTiles[2][kTileRows] = {
    {tile<kType, 1, 1>, tile<kType, 1, 2>, tile<kType, 1, 3>, tile<kType, 1, 4>, tile<kType, 1, 5>, tile<kType, 1, 6>},
    {tile<kType, 2, 1>, tile<kType, 2, 2>, tile<kType, 2, 3>, tile<kType, 2, 4>}};

template <WeightType kType>
void all_panels(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
                int out_stride, std::byte*) {
  const int most = x.lo ? kTileRowsTwoPlanes : kTileRows;
  for (std::ptrdiff_t p = first_panel; p < first_panel + num_panels; ++p) {
    const std::byte* panel = weights.panels + static_cast<std::size_t>(p) * weights.panel_bytes;
    const int tiles = (x.num_rows + most - 1) / most;
    for (int i = 0, row = 0; i < tiles; ++i) {
      const int rows = (x.num_rows - row + tiles - i - 1) / (tiles - i);
      const std::ptrdiff_t next_panel = static_cast<std::ptrdiff_t>(weights.panel_bytes) * (tiles + i) / tiles;
      const Ahead ahead = {panel + (tiles == 1 ? kPrefetchBytes : next_panel), tiles};
      kTiles<kType>[x.lo ? 1 : 0][rows - 1](panel, ahead, x, row, out + p * kPanelRows, out_stride);
      row += rows;
    }
  }
}

constexpr ProductsByType kByType = products_by_type([]<WeightType kType>() { return all_panels<kType>; });

}  // namespace

void few_rows(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
              int out_stride) {
  kByType.of[static_cast<int>(weights.type)](weights, first_panel, num_panels, x, out, out_stride, nullptr);
}

void one_row(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
             int out_stride, std::byte*) {
  few_rows(weights, first_panel, num_panels, x, out, out_stride);
}

}  // namespace couplet::kernels::avx512
