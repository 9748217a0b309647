// The table of a level, from the functions that every level declares. Included inside a level's namespace by
// <level>/table.cpp, which defines kName.

namespace {

std::size_t scratch_bytes(int max_cols, int head_dim, int num_queries) {
  const std::size_t product = product_scratch_bytes(max_cols);
  const std::size_t attention = attention_scratch_bytes(head_dim, num_queries);
  return product > attention ? product : attention;
}

constexpr KernelTable kTable = {
    .name = kName,
    .quantize = quantize,
    .many_rows = {nullptr, nullptr, nullptr, many_rows, many_rows, many_rows, many_rows, many_rows, many_rows,
                  many_rows, many_rows},
    .one_row = {nullptr, nullptr, nullptr, one_row, one_row, one_row, one_row, one_row, one_row, one_row, one_row},
    .float_rows = {float_rows, float_rows, float_rows},
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
