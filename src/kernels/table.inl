// The table of a level, from the functions that every level declares. Included inside a level's namespace by
// <level>/table.cpp, which defines kName.

namespace {

std::size_t scratch_bytes(int max_cols, int head_dim) {
  std::size_t most = product_scratch_bytes(max_cols);
  for (const std::size_t bytes : {f16_scratch_bytes(head_dim), q16_scratch_bytes(head_dim)}) most = bytes > most ? bytes : most;
  return most;
}

constexpr KernelTable kTable = {
    .name = kName,
    .quantize = quantize,
    .many_rows = many_rows,
    .one_row = one_row,
    .float_rows = float_rows,
    .rms_norm = rms_norm,
    .rope = rope,
    .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,
    .clamped_silu_mul = clamped_silu_mul,
    .soft_cap = soft_cap,
    .add = add,
    .add_scaled = add_scaled,
    .scale = scale,
    .add_bias = add_bias,
    .attention = {{store_f16, attend_prefill_f16, attend_decode_f16},
                  {store_q16, attend_prefill_q16, attend_decode_q16},
                  {store_q16_fine, attend_prefill_q16_fine, attend_decode_q16_fine}},
    .merge_spans = merge_spans,
    .finish_attention = finish_attention,
    .sum_exp = sum_exp,
    .argmax = argmax,
    .pack_panel = pack_panel_portable,
    .scratch_bytes = scratch_bytes,
};

}  // namespace

const KernelTable& table() { return kTable; }
