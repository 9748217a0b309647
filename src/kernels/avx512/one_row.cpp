// Rule 4 for one row: codes go from the packed panel straight into the dot products, so that the weights are read once,
// in order, at the speed of memory.

#include "kernels/avx512/product_kernels.h"
#include "kernels/avx512/unpack.h"

namespace couplet::kernels::avx512 {
namespace {

constexpr int kPrefetchBytes = 4096;  // ahead of the codes in use

inline void prefetch(const std::byte* p, int bytes) {
  for (int i = 0; i < bytes; i += 64) _mm_prefetch(reinterpret_cast<const char*>(p + kPrefetchBytes + i), _MM_HINT_T0);
}

template <WeightType kType, bool kTwoPlanes>
inline __m512 add_part(const std::byte* block, int part, std::ptrdiff_t k, const QuantizedRows& x, __m512 acc) {
  using Type = Unpack<kType>;
  __m512i codes[8];
  Type::codes(block + Type::kHeadBytes + part * Type::kPartBytes, codes);
  const __m512 da = _mm512_set1_ps(x.scale[k / 32]);
#pragma GCC unroll 2
  for (int sub = 0; sub < Type::kSubBlocks; ++sub) {
    __m512i hi = Type::start(x.sum_hi + k / 16, sub), lo = hi;
    if constexpr (kTwoPlanes) lo = Type::start(x.sum_lo + k / 16, sub);
#pragma GCC unroll 8
    for (int i = 0; i < Type::kSubBlockVectors; ++i) {
      const int j = sub * Type::kSubBlockVectors + i;
      hi = _mm512_dpbusd_epi32(hi, codes[j], broadcast_word(x.hi + k + 4 * j));
      if constexpr (kTwoPlanes) lo = _mm512_dpbusd_epi32(lo, codes[j], broadcast_word(x.lo + k + 4 * j));
    }
    __m512 f = _mm512_cvtepi32_ps(hi);
    if constexpr (kTwoPlanes) f = _mm512_fmadd_ps(_mm512_set1_ps(254), f, _mm512_cvtepi32_ps(lo));
    acc = _mm512_fmadd_ps(_mm512_mul_ps(f, Type::dw(block, part * Type::kSubBlocks + sub)), da, acc);
  }
  if constexpr (Type::kMinimum) acc = _mm512_fmadd_ps(Type::mw(block, part), _mm512_set1_ps(x.scaled_sum[k / 32]), acc);
  return acc;
}

template <WeightType kType, bool kTwoPlanes>
void stream_panels(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out) {
  using Type = Unpack<kType>;
  const std::byte* block = weights.panels + static_cast<std::size_t>(first_panel) * weights.panel_bytes;
  for (std::ptrdiff_t p = first_panel; p < first_panel + num_panels; ++p) {
    __m512 acc = _mm512_setzero_ps();
    for (std::ptrdiff_t k = 0; k < weights.cols; block += Type::kBlockBytes) {
      if constexpr (Type::kSuperBlocks) prefetch(block, Type::kHeadBytes);
      for (int part = 0; part < Type::kParts; ++part, k += 32) {
        prefetch(block + (Type::kSuperBlocks ? Type::kHeadBytes : 0) + part * Type::kPartBytes,
                 Type::kPartBytes + (Type::kSuperBlocks ? 0 : Type::kHeadBytes));
        acc = add_part<kType, kTwoPlanes>(block, part, k, x, acc);
      }
    }
    _mm512_storeu_ps(out + p * kPanelRows, acc);
  }
}

template <WeightType kType>
void all_panels(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out) {
  const auto stream = x.lo ? stream_panels<kType, true> : stream_panels<kType, false>;
  stream(weights, first_panel, num_panels, x, out);
}

using Product = void (*)(const PackedMatrix&, int, int, const QuantizedRows&, float*);
constexpr Product kByType[kNumWeightTypes] = {
    nullptr, nullptr, nullptr, all_panels<WeightType::q4_0>, all_panels<WeightType::q4_1>,
    all_panels<WeightType::q5_0>, all_panels<WeightType::q5_1>, all_panels<WeightType::q8_0>,
    all_panels<WeightType::q4_k>, all_panels<WeightType::q5_k>, all_panels<WeightType::q6_k>};

}  // namespace

void one_row(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out, int,
             std::byte*) {
  kByType[static_cast<int>(weights.type)](weights, first_panel, num_panels, x, out);
}

}  // namespace couplet::kernels::avx512
