// Rule 4 with 256-bit registers. One panel (16 outputs, two halves of 8) at a time: few rows take their codes straight
// from the packed panel, many rows from a copy that was unpacked once. Written once for the levels that differ in their
// dot products alone: <level>/products.cpp includes it after <level>/dots.h, which defines COUPLET_LEVEL and
// Dots<type>.

#include <type_traits>

#include "kernels/scaled_sum.h"

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

// Up to here the packed panel is read again for every tile: with 9 to 24 rows faster by 1 to 25 % where codes are plain
// and a scale stands for itself, slower by 5 to 45 % elsewhere.
template <WeightType kType>
constexpr int kFewRows = PackedFormat<kType>::kFifthBit || PackedFormat<kType>::kSuperBlocks ? 8 : 24;
constexpr int kPrefetchBytes = 4096;

// Where a tile finds a part's codes and scales: in the packed block ...
template <WeightType kType>
struct PackedPart {
  using Type = Dots<kType>;
  const std::byte* block;
  int part;

  __m256i code(int j, int half) const { return Type::code(block, part, j, half); }
  __m256 dw(int sub, int half) const { return Type::dw(block, part * Type::kSubBlocks + sub, half); }
  __m256 mw(int sub, int half) const { return Type::mw(block, part * Type::kSubBlocks + sub, half); }
};

// ... or unpacked.
template <WeightType kType>
struct UnpackedPart {
  const float* part;

  __m256i code(int j, int half) const { return load_vector(part + 16 * j + 8 * half); }
  __m256 dw(int sub, int half) const { return _mm256_loadu_ps(part + 128 + 16 * sub + 8 * half); }
  __m256 mw(int sub, int half) const {
    return _mm256_loadu_ps(part + PackedFormat<kType>::kMinimumsAt + 16 * sub + 8 * half);
  }
};

template <WeightType kType>
void unpack_panel(const std::byte* block, int cols, float* out) {
  using Type = Dots<kType>;
  for (int k = 0; k < cols; block += Type::kBlockBytes) {
    for (int part = 0; part < Type::kParts; ++part, k += 32, out += Type::kUnpackedFloats) {
      const PackedPart<kType> source = {block, part};
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 8
        for (int j = 0; j < 8; ++j) {
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16 * j + 8 * half), source.code(j, half));
        }
        for (int sub = 0; sub < Type::kSubBlocks; ++sub) {
          _mm256_storeu_ps(out + 128 + 16 * sub + 8 * half, source.dw(sub, half));
          if constexpr (Type::kMinimum) _mm256_storeu_ps(out + Type::kMinimumsAt + 16 * sub + 8 * half, source.mw(sub, half));
        }
      }
    }
  }
}

struct Rows {  // of activations, from the tile's first on
  const QuantizedRows& x;
  std::ptrdiff_t first;

  const std::int8_t* codes(int row, int plane, std::ptrdiff_t k) const {
    return (plane == 0 ? x.hi : x.lo) + (first + row) * x.code_stride + k;
  }
  const std::int16_t* sums(int row, int plane, std::ptrdiff_t k) const {
    return (plane == 0 ? x.sum_hi : x.sum_lo) + (first + row) * (x.cols / 16) + k / 16;
  }
  std::ptrdiff_t block(int row, std::ptrdiff_t k) const { return (first + row) * (x.cols / 32) + k / 32; }
  float da(int row, std::ptrdiff_t k) const { return x.scale[block(row, k)]; }
};

template <WeightType kType, int kPlanes, int kRows>
struct Tile {
  using Type = Dots<kType>;

  __m256 acc[kRows][2];
  __m256i dots[kRows][kPlanes][2];

  inline __attribute__((always_inline)) void clear() {
    for (int row = 0; row < kRows; ++row) acc[row][0] = acc[row][1] = _mm256_setzero_ps();
  }

  // One part's steps of every row's chain; k is the part's first value.
  template <class Part>
  inline __attribute__((always_inline)) void add_part(const Part& part, const Rows& rows, std::ptrdiff_t k) {
#pragma GCC unroll 2
    for (int sub = 0; sub < Type::kSubBlocks; ++sub) {
#pragma GCC unroll 6
      for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
        for (int plane = 0; plane < kPlanes; ++plane) {
          dots[row][plane][0] = dots[row][plane][1] = start<Type::kOffset, Type::kSubBlocks>(rows.sums(row, plane, k), sub);
        }
      }
      Type::add(part, sub * Type::kSubBlockVectors, rows, k, dots);
#pragma GCC unroll 6
      for (int row = 0; row < kRows; ++row) {
        const __m256 da = _mm256_set1_ps(rows.da(row, k));
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          __m256 f = _mm256_cvtepi32_ps(dots[row][0][half]);
          if constexpr (kPlanes == 2) {
            f = _mm256_fmadd_ps(_mm256_set1_ps(254), f, _mm256_cvtepi32_ps(dots[row][kPlanes - 1][half]));
          }
          acc[row][half] = _mm256_fmadd_ps(_mm256_mul_ps(f, part.dw(sub, half)), da, acc[row][half]);
        }
      }
      if constexpr (!Type::kMinimum) continue;
#pragma GCC unroll 6
      for (int row = 0; row < kRows; ++row) {
        const std::ptrdiff_t block = rows.block(row, k);
        const __m256 sa = _mm256_set1_ps(Type::kSubBlocks == 2 ? scaled_sum_of_16(rows.x, block, sub) : rows.x.scaled_sum[block]);
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) acc[row][half] = _mm256_fmadd_ps(part.mw(sub, half), sa, acc[row][half]);
      }
    }
  }

  void store(float* out, std::ptrdiff_t stride) const {
    for (int row = 0; row < kRows; ++row, out += stride) {
      _mm256_storeu_ps(out, acc[row][0]);
      _mm256_storeu_ps(out + 8, acc[row][1]);
    }
  }
};

// The chains of a tile over parts [begin, end).
template <WeightType kType, int kPlanes, int kRows>
inline void run(Tile<kType, kPlanes, kRows>& sum, const float* panel, const Rows& rows, std::ptrdiff_t begin,
                std::ptrdiff_t end) {
  sum.clear();
  for (std::ptrdiff_t part = begin; part < end; ++part) {
    sum.add_part(UnpackedPart<kType>{panel + part * PackedFormat<kType>::kUnpackedFloats}, rows, part * 32);
  }
}

inline void prefetch(const std::byte* p, int bytes) {
  for (int i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(p + kPrefetchBytes + i), _MM_HINT_T0);
}

template <WeightType kType, int kPlanes, int kRows>
inline void run(Tile<kType, kPlanes, kRows>& sum, const std::byte* panel, const Rows& rows, std::ptrdiff_t begin,
                std::ptrdiff_t end) {
  using Type = Dots<kType>;
  constexpr int kBytes = Type::kBlockBytes / Type::kParts;
  sum.clear();
  for (std::ptrdiff_t part = begin; part < end;) {
    const std::byte* block = panel + part / Type::kParts * Type::kBlockBytes;
    for (int i = 0; i < Type::kParts; ++i, ++part) {
      if (rows.first == 0) prefetch(block + i * kBytes, kBytes);
      sum.add_part(PackedPart<kType>{block, i}, rows, part * 32);
    }
  }
}

template <WeightType kType, int kPlanes, int kRows, bool kPacked>
void tile(const void* panel, const Rows& rows, float* out, std::ptrdiff_t stride) {
  const auto* source = static_cast<const std::conditional_t<kPacked, std::byte, float>*>(panel);
  Tile<kType, kPlanes, kRows> sum;
#ifdef COUPLET_SPLIT_K  // against the contract, to see the tests fail
  const int parts_of_block = Dots<kType>::kParts, parts = rows.x.cols / 32;
  const int half = rows.x.num_rows > 1 ? parts / parts_of_block / 2 * parts_of_block : 0;
  Tile<kType, kPlanes, kRows> first;
  run(first, source, rows, 0, half);
  run(sum, source, rows, half, parts);
  for (int row = 0; row < kRows && half > 0; ++row) {
    for (int i = 0; i < 2; ++i) sum.acc[row][i] = _mm256_add_ps(first.acc[row][i], sum.acc[row][i]);
  }
#else
  run(sum, source, rows, 0, rows.x.cols / 32);
#endif
  sum.store(out, stride);
}

using TileFunction = void (*)(const void*, const Rows&, float*, std::ptrdiff_t);

constexpr int least(int a, int b) { return a < b ? a : b; }

// Rows in even tiles.
template <WeightType kType, int kPlanes>
void all_rows(const std::byte* panel, bool packed, const QuantizedRows& x, float* out, std::ptrdiff_t stride) {
  constexpr int kMost = Dots<kType>::kTileRows[kPlanes - 1];
  static constexpr TileFunction kPacked[] = {
      tile<kType, kPlanes, 1, true>, tile<kType, kPlanes, least(2, kMost), true>,
      tile<kType, kPlanes, least(3, kMost), true>, tile<kType, kPlanes, least(4, kMost), true>,
      tile<kType, kPlanes, least(5, kMost), true>, tile<kType, kPlanes, least(6, kMost), true>};
  static constexpr TileFunction kUnpacked[] = {
      tile<kType, kPlanes, kMost, false>, tile<kType, kPlanes, kMost - 1, false>,
      tile<kType, kPlanes, (kMost > 2 ? kMost - 2 : 1), false>};
  static_assert(kMost <= 6 && kFewRows<kType> >= 8, "an unpacked tile could need fewer rows than kMost - 2");
  for (std::ptrdiff_t row = 0; row < x.num_rows;) {
    const std::ptrdiff_t left = x.num_rows - row, tiles = (left + kMost - 1) / kMost, rows = (left + tiles - 1) / tiles;
    const TileFunction run = packed ? kPacked[rows - 1] : kUnpacked[kMost - rows];
    run(panel, {x, row}, out + row * stride, stride);
    row += rows;
  }
}

template <WeightType kType>
void all_panels(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
                int out_stride, std::byte* scratch) {
  const bool packed = x.num_rows <= kFewRows<kType>;
  for (std::ptrdiff_t p = first_panel; p < first_panel + num_panels; ++p) {
    const std::byte* panel = weights.panels + static_cast<std::size_t>(p) * weights.panel_bytes;
    if (!packed) {
      unpack_panel<kType>(panel, weights.cols, reinterpret_cast<float*>(scratch));
      panel = scratch;
    }
    const auto run = x.lo ? all_rows<kType, 2> : all_rows<kType, 1>;
    run(panel, packed, x, out + p * kPanelRows, out_stride);
  }
}

constexpr ProductsByType kByType = products_by_type([]<WeightType kType>() { return all_panels<kType>; });

}  // namespace

void many_rows(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
               int out_stride, std::byte* scratch) {
  kByType.of[static_cast<int>(weights.type)](weights, first_panel, num_panels, x, out, out_stride, scratch);
}

// One row never needs the copy, and never the scratch.
void one_row(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
             int out_stride, std::byte* scratch) {
  many_rows(weights, first_panel, num_panels, x, out, out_stride, scratch);
}

std::size_t product_scratch_bytes(int max_cols) {
  return static_cast<std::size_t>((max_cols + 31) / 32) * kMostUnpackedFloats * sizeof(float);
}

}  // namespace couplet::kernels::COUPLET_LEVEL
