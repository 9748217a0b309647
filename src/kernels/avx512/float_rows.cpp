// Rule 5: tiles of up to six rows by two panels; a single row takes four panels, for enough chains at once.

#include "kernels/avx512/product_kernels.h"
#include "kernels/avx512/unpack.h"

namespace couplet::kernels::avx512 {
namespace {

constexpr int kTileRows = 6;

template <WeightType kType>
inline __m512 weights_at(const std::byte* panel, std::ptrdiff_t k) {
  if constexpr (kType == WeightType::f32) return _mm512_loadu_ps(panel + 64 * k);
  if constexpr (kType == WeightType::f16) return load_halves(panel + 32 * k);
  const auto* bits = reinterpret_cast<const __m256i*>(panel + 32 * k);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(bits)), 16));
}

struct Job {
  const PackedMatrix& weights;
  const float* x;
  std::ptrdiff_t x_stride;
  float* out;
  std::ptrdiff_t out_stride;
};

template <WeightType kType, int kRows, int kPanels>
void tile(const Job& job, int row, int panel, int num_panels) {
  const std::byte* panels[kPanels];
  for (int i = 0; i < kPanels; ++i) {  // a missing panel is the last one once more
    const int p = panel + (i < num_panels ? i : num_panels - 1);
    panels[i] = job.weights.panels + static_cast<std::size_t>(p) * job.weights.panel_bytes;
  }
  const float* x = job.x + row * job.x_stride;
  __m512 acc[kRows][kPanels];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kPanels; ++i) acc[r][i] = _mm512_setzero_ps();
  }
  for (std::ptrdiff_t k = 0; k < job.weights.cols; ++k) {
    __m512 w[kPanels];
#pragma GCC unroll 4
    for (int i = 0; i < kPanels; ++i) w[i] = weights_at<kType>(panels[i], k);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m512 value = _mm512_set1_ps(x[r * job.x_stride + k]);
#pragma GCC unroll 4
      for (int i = 0; i < kPanels; ++i) acc[r][i] = _mm512_fmadd_ps(w[i], value, acc[r][i]);
    }
  }
  float* out = job.out + row * job.out_stride + static_cast<std::ptrdiff_t>(panel) * kPanelRows;
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int i = 0; i < kPanels; ++i) {
      if (i < num_panels) _mm512_storeu_ps(out + r * job.out_stride + i * kPanelRows, acc[r][i]);
    }
  }
}

using TileFunction = void (*)(const Job&, int, int, int);

template <WeightType kType>
void all_panels(const Job& job, int first_panel, int num_panels, int num_rows) {
  constexpr TileFunction kTiles[kTileRows] = {tile<kType, 1, 4>, tile<kType, 2, 2>, tile<kType, 3, 2>,
                                              tile<kType, 4, 2>, tile<kType, 5, 2>, tile<kType, 6, 2>};
  const int step = num_rows == 1 ? 4 : 2, end = first_panel + num_panels;
  for (int panel = first_panel; panel < end; panel += step) {
    const int panels = end - panel < step ? end - panel : step;
    for (int row = 0; row < num_rows;) {
      const int left = num_rows - row, tiles = (left + kTileRows - 1) / kTileRows;
      const int rows = (left + tiles - 1) / tiles;
      kTiles[rows - 1](job, row, panel, panels);
      row += rows;
    }
  }
}

}  // namespace

void float_rows(const PackedMatrix& weights, int first_panel, int num_panels, const float* x, int x_stride,
                int num_rows, float* out, int out_stride) {
  constexpr void (*kByType[])(const Job&, int, int, int) = {all_panels<WeightType::f32>, all_panels<WeightType::f16>,
                                                            all_panels<WeightType::bf16>};
  const Job job = {weights, x, x_stride, out, out_stride};
  kByType[static_cast<int>(weights.type)](job, first_panel, num_panels, num_rows);
}

}  // namespace couplet::kernels::avx512
