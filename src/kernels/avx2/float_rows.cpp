// Rule 5: tiles of up to six rows by one panel; a single row takes four panels, for enough chains at once.

#include "kernels/avx2/product_kernels.h"
#include "kernels/avx2/unpack.h"

namespace couplet::kernels::avx2 {
namespace {

constexpr int kTileRows = 6;

template <WeightType kType>
inline __m256 weights_at(const std::byte* panel, std::ptrdiff_t k, int half) {
  if constexpr (kType == WeightType::f32) {
    return _mm256_castsi256_ps(load_vector(panel + 64 * k + 32 * half));
  } else if constexpr (kType == WeightType::f16) {
    return load_halves(panel + 32 * k + 16 * half);
  } else {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(panel + 32 * k + 16 * half));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
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
  constexpr int kVectors = 2 * kPanels;  // halves of panels
  const std::byte* panels[kPanels];
  for (int i = 0; i < kPanels; ++i) {  // a missing panel is the last one once more
    const int p = panel + (i < num_panels ? i : num_panels - 1);
    panels[i] = job.weights.panels + static_cast<std::size_t>(p) * job.weights.panel_bytes;
  }
  const float* x = job.x + row * job.x_stride;
  __m256 acc[kRows][kVectors];
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) acc[r][i] = _mm256_setzero_ps();
  }
  for (std::ptrdiff_t k = 0; k < job.weights.cols; ++k) {
    __m256 w[kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) w[i] = weights_at<kType>(panels[i / 2], k, i % 2);
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      const __m256 value = _mm256_set1_ps(x[r * job.x_stride + k]);
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) acc[r][i] = _mm256_fmadd_ps(w[i], value, acc[r][i]);
    }
  }
  float* out = job.out + row * job.out_stride + static_cast<std::ptrdiff_t>(panel) * kPanelRows;
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      if (i / 2 < num_panels) _mm256_storeu_ps(out + r * job.out_stride + i * 8, acc[r][i]);
    }
  }
}

using TileFunction = void (*)(const Job&, int, int, int);

template <WeightType kType>
void all_panels(const Job& job, int first_panel, int num_panels, int num_rows) {
  constexpr TileFunction kTiles[kTileRows] = {tile<kType, 1, 4>, tile<kType, 2, 1>, tile<kType, 3, 1>,
                                              tile<kType, 4, 1>, tile<kType, 5, 1>, tile<kType, 6, 1>};
  const int step = num_rows == 1 ? 4 : 1, end = first_panel + num_panels;
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

}  // namespace couplet::kernels::avx2
