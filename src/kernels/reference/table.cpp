#include "kernels/levels.h"
#include "kernels/packed.h"
#include "kernels/reference/float_kernels.h"
#include "kernels/reference/product_kernels.h"

namespace couplet::kernels::reference {
namespace {

std::size_t scratch_bytes(int max_cols, int head_dim, int num_queries) {
  const std::size_t product = product_scratch_bytes(max_cols);
  const std::size_t attention = attention_scratch_bytes(head_dim, num_queries);
  return product > attention ? product : attention;
}

#ifdef COUPLET_SPLIT_K
constexpr KernelTable::QuantizedProduct kMany = product_split_k;
#else
constexpr KernelTable::QuantizedProduct kMany = product;
#endif
constexpr KernelTable::QuantizedProduct kOne = product;
constexpr KernelTable::FloatProduct kFloat = float_product;

constexpr KernelTable kTable = {
    .name = "reference",
    .quantize = quantize,
    .many_rows = {nullptr, nullptr, nullptr, kMany, kMany, kMany, kMany, kMany, kMany, kMany, kMany},
    .one_row = {nullptr, nullptr, nullptr, kOne, kOne, kOne, kOne, kOne, kOne, kOne, kOne},
    .float_rows = {kFloat, kFloat, kFloat},
    .rms_norm = rms_norm,
    .rope = rope,
    .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,
    .add = add,
    .scale = scale,
    .add_bias = add_bias,
    .store_page = store_page,
    .attend_prefill = attend_prefill,
    .attend_decode = attend_decode,
    .merge_spans = merge_spans,
    .finish_attention = finish_attention,
    .sum_exp = sum_exp,
    .argmax = argmax,
    .pack_panel = pack_panel_portable,
    .scratch_bytes = scratch_bytes,
};

}  // namespace

const KernelTable& table() { return kTable; }

}  // namespace couplet::kernels::reference
