// Rule 4. One panel (16 outputs, two halves of 8) at a time: few rows take their codes straight from the packed panel,
// many rows from a copy that was unpacked once.

#include <type_traits>

#include "kernels/avx2/product_kernels.h"
#include "kernels/avx2/unpack.h"

namespace couplet::kernels::avx2 {
namespace {

constexpr int kTileRows = 4;  // times planes: 8 sums in 16 bits, which with 2 codes and an activation fit 16 registers
// Up to here reading the packed panel again for every tile is as fast or faster: 4 rows of Q4_0 by half, 16 of Q5_K even.
constexpr int kFewRows = 16;
constexpr int kPrefetchBytes = 4096;
constexpr int kPartFloats = (8 * 64 + 3 * 64) / 4;  // an unpacked part: 8 vectors of codes, at most 3 of scales

// Where a tile finds a part's codes and scales: in the packed block ...
template <WeightType kType>
struct PackedPart {
  using Type = Unpack<kType>;
  const std::byte* block;
  int part;

  __m256i code(int j, int half) const {
    return Type::code(block + Type::kHeadBytes + part * Type::kPartBytes, j, half);
  }
  __m256 dw(int sub, int half) const { return Type::dw(block, part * Type::kSubBlocks + sub, half); }
  __m256 mw(int half) const { return Type::mw(block, part, half); }
};

// ... or unpacked.
struct UnpackedPart {
  const float* part;

  __m256i code(int j, int half) const { return load_vector(part + 16 * j + 8 * half); }
  __m256 dw(int sub, int half) const { return _mm256_loadu_ps(part + 128 + 16 * sub + 8 * half); }
  __m256 mw(int half) const { return _mm256_loadu_ps(part + 144 + 8 * half); }
};

template <WeightType kType>
void unpack_panel(const std::byte* block, int cols, float* out) {
  using Type = Unpack<kType>;
  for (int k = 0; k < cols; block += Type::kBlockBytes) {
    for (int part = 0; part < Type::kParts; ++part, k += 32, out += kPartFloats) {
      const PackedPart<kType> source = {block, part};
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 8
        for (int j = 0; j < 8; ++j) {
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 16 * j + 8 * half), source.code(j, half));
        }
        for (int sub = 0; sub < Type::kSubBlocks; ++sub) {
          _mm256_storeu_ps(out + 128 + 16 * sub + 8 * half, source.dw(sub, half));
        }
        if constexpr (Type::kMinimum) _mm256_storeu_ps(out + 144 + 8 * half, source.mw(half));
      }
    }
  }
}

// Keeps GCC from computing all products first and spilling them: a sum is finished before the next one starts.
inline __attribute__((always_inline)) void in_order(__m256i& sum) { asm volatile("" : "+x"(sum)); }

struct Rows {  // of activations, from the tile's first on
  const QuantizedRows& x;
  std::ptrdiff_t first;

  const std::int8_t* codes(int row, int plane, std::ptrdiff_t k) const {
    return (plane == 0 ? x.hi : x.lo) + (first + row) * x.code_stride + k;
  }
  const std::int16_t* sums(int row, int plane, std::ptrdiff_t k) const {
    return (plane == 0 ? x.sum_hi : x.sum_lo) + (first + row) * (x.cols / 16) + k / 16;
  }
  float da(int row, std::ptrdiff_t k) const { return x.scale[(first + row) * (x.cols / 32) + k / 32]; }
  float sa(int row, std::ptrdiff_t k) const { return x.scaled_sum[(first + row) * (x.cols / 32) + k / 32]; }
};

template <WeightType kType, int kPlanes, int kRows>
struct Tile {
  using Type = Unpack<kType>;

  __m256 acc[kRows][2];
  __m256i dots[kRows][kPlanes][2];

  inline __attribute__((always_inline)) void clear() {
    for (int row = 0; row < kRows; ++row) acc[row][0] = acc[row][1] = _mm256_setzero_ps();
  }

  // dots += codes of vectors first_vector, ... times activations: pairs in 16 bits, then fours in 32.
  template <class Part>
  inline __attribute__((always_inline)) void add_group(const Part& part, int first_vector, const Rows& rows,
                                                       std::ptrdiff_t k) {
    __m256i sums[kRows][kPlanes][2];
#pragma GCC unroll 8
    for (int i = 0; i < Type::kGroup; ++i) {
      const int j = first_vector + i;
      const __m256i codes[2] = {part.code(j, 0), part.code(j, 1)};
#pragma GCC unroll 4
      for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
        for (int plane = 0; plane < kPlanes; ++plane) {
          const __m256i x = broadcast_word(rows.codes(row, plane, k + 4 * j));
#pragma GCC unroll 2
          for (int half = 0; half < 2; ++half) {
            const __m256i pairs = Type::pairs(codes[half], x);
            __m256i& sum = sums[row][plane][half];
            sum = i == 0 ? pairs : _mm256_add_epi16(sum, pairs);
            in_order(sum);
          }
        }
      }
    }
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
      for (int plane = 0; plane < kPlanes; ++plane) {
#pragma GCC unroll 2
        for (int half = 0; half < 2; ++half) {
          __m256i& dot = dots[row][plane][half];
          dot = _mm256_add_epi32(dot, _mm256_madd_epi16(sums[row][plane][half], ones));
        }
      }
    }
  }

  // One part's steps of every row's chain; k is the part's first value.
  template <class Part>
  inline __attribute__((always_inline)) void add_part(const Part& part, const Rows& rows, std::ptrdiff_t k) {
#pragma GCC unroll 2
    for (int sub = 0; sub < Type::kSubBlocks; ++sub) {
#pragma GCC unroll 4
      for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
        for (int plane = 0; plane < kPlanes; ++plane) {
          dots[row][plane][0] = dots[row][plane][1] = Type::start(rows.sums(row, plane, k), sub);
        }
      }
#pragma GCC unroll 8
      for (int j = 0; j < Type::kSubBlockVectors; j += Type::kGroup) {
        add_group(part, sub * Type::kSubBlockVectors + j, rows, k);
      }
#pragma GCC unroll 4
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
    }
    if constexpr (!Type::kMinimum) return;
#pragma GCC unroll 4
    for (int row = 0; row < kRows; ++row) {
      const __m256 sa = _mm256_set1_ps(rows.sa(row, k));
#pragma GCC unroll 2
      for (int half = 0; half < 2; ++half) acc[row][half] = _mm256_fmadd_ps(part.mw(half), sa, acc[row][half]);
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
    sum.add_part(UnpackedPart{panel + part * kPartFloats}, rows, part * 32);
  }
}

inline void prefetch(const std::byte* p, int bytes) {
  for (int i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(p + kPrefetchBytes + i), _MM_HINT_T0);
}

template <WeightType kType, int kPlanes, int kRows>
inline void run(Tile<kType, kPlanes, kRows>& sum, const std::byte* panel, const Rows& rows, std::ptrdiff_t begin,
                std::ptrdiff_t end) {
  using Type = Unpack<kType>;
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
  const int parts_of_block = Unpack<kType>::kParts, parts = rows.x.cols / 32;
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
template <WeightType kType, bool kPacked>
constexpr TileFunction kTiles[2][kTileRows] = {
    {tile<kType, 1, 1, kPacked>, tile<kType, 1, 2, kPacked>, tile<kType, 1, 3, kPacked>, tile<kType, 1, 4, kPacked>},
    {tile<kType, 2, 1, kPacked>, tile<kType, 2, 2, kPacked>}};

template <WeightType kType>
void all_panels(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
                int out_stride, std::byte* scratch) {
  const int most = x.lo ? kTileRows / 2 : kTileRows;
  const bool packed = x.num_rows <= kFewRows;
  const auto& tiles = packed ? kTiles<kType, true>[x.lo ? 1 : 0] : kTiles<kType, false>[x.lo ? 1 : 0];
  for (std::ptrdiff_t p = first_panel; p < first_panel + num_panels; ++p) {
    const std::byte* panel = weights.panels + static_cast<std::size_t>(p) * weights.panel_bytes;
    if (!packed) {
      unpack_panel<kType>(panel, weights.cols, reinterpret_cast<float*>(scratch));
      panel = scratch;
    }
    for (std::ptrdiff_t row = 0; row < x.num_rows;) {
      const std::ptrdiff_t left = x.num_rows - row, rows = left < most ? left : most;
      tiles[rows - 1](panel, {x, row}, out + row * out_stride + p * kPanelRows, out_stride);
      row += rows;
    }
  }
}

constexpr KernelTable::QuantizedProduct kByType[kNumWeightTypes] = {
    nullptr, nullptr, nullptr, all_panels<WeightType::q4_0>, all_panels<WeightType::q4_1>,
    all_panels<WeightType::q5_0>, all_panels<WeightType::q5_1>, all_panels<WeightType::q8_0>,
    all_panels<WeightType::q4_k>, all_panels<WeightType::q5_k>, all_panels<WeightType::q6_k>};

}  // namespace

void many_rows(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
               int out_stride, std::byte* scratch) {
  kByType[static_cast<int>(weights.type)](weights, first_panel, num_panels, x, out, out_stride, scratch);
}

// One row never needs the copy, and never the scratch.
void one_row(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
             int out_stride, std::byte* scratch) {
  many_rows(weights, first_panel, num_panels, x, out, out_stride, scratch);
}

std::size_t product_scratch_bytes(int max_cols) {
  return static_cast<std::size_t>((max_cols + 31) / 32) * kPartFloats * sizeof(float);
}

}  // namespace couplet::kernels::avx2
