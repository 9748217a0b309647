#pragma once
// Numbers -> numbers: every arithmetic step of the model as one table of functions, one table a level (reference, avx2,
// avx2_vnni, avx512, amx). `reference/` is plain scalar C++ and the meaning of every kernel; every level gives the same bits
// (docs/numerics.md). A kernel knows no threads, memory, strings or errors: shapes were checked in model/ops.cpp.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace couplet::kernels {

inline constexpr int kPanelRows = 16;        // weight outputs that stand together in one panel
inline constexpr int kActivationBlock = 32;  // activations that share a scale
inline constexpr int kPagePositions = 16;    // positions of one cache page
inline constexpr int kSpanPositions = 256;   // positions of one attention span, at fixed absolute positions
inline constexpr int kSpanPages = kSpanPositions / kPagePositions;

constexpr int padded16(int n) { return (n + 15) & ~15; }

// `coded` is not a file's: 4-bit codes into a list of 16 integers that each block has (packed.h), which the rarer types
// of files are turned into.
enum class WeightType : std::uint8_t {
  f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k, q2_k, q3_k, iq4_nl, iq4_xs, mxfp4, coded
};
inline constexpr int kNumWeightTypes = 17;
constexpr bool is_quantized(WeightType type) { return type > WeightType::bf16; }

// How a page of keys and values holds them (page_layout.h): as f16, multiplied in float; or as integers, keys in 14 bits
// and values in 8, q16_fine in two planes of 8, multiplied exactly (rules 7 and 10).
enum class PageFormat : std::uint8_t { f16, q16, q16_fine };
inline constexpr int kNumPageFormats = 3;

// A weight matrix [rows, cols] in panels of 16 outputs (packed.h); the last panel is filled up with zero rows.
struct PackedMatrix {
  WeightType type = WeightType::f32;
  int rows = 0;
  int cols = 0;
  std::size_t panel_bytes = 0;
  const std::byte* panels = nullptr;  // [num_panels(), panel_bytes], 64-byte aligned

  int num_panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
};

// Activation rows after rule 3: codes, a scale every 32, and the exact sums that offsets and minimums need.
struct QuantizedRows {
  int num_rows = 0;
  int cols = 0;                  // a multiple of 32
  int code_stride = 0;           // codes from one row to the next
  std::int8_t* hi = nullptr;     // [num_rows, code_stride], the first plane
  std::int8_t* lo = nullptr;     // the second plane; null: one plane
  float* scale = nullptr;        // [num_rows, cols / 32] da: d, or d / 254 with two planes
  float* scaled_sum = nullptr;   // [num_rows, cols / 32] sa = da * float(S), S over the block's 32 codes
  std::int16_t* sum_hi = nullptr;  // [num_rows, cols / 16] sums of 16 codes
  std::int16_t* sum_lo = nullptr;  // null: one plane
};

// Queries of one sequence and one key/value head against one span. Query n is row n / group, head n % group.
struct AttentionSpan {
  const float* queries = nullptr;  // row r, head g at queries + r * query_stride + g * head_dim
  int query_stride = 0;
  int num_rows = 0;
  int group = 0;           // query heads that share the key/value head
  int head_dim = 0;
  int first_position = 0;  // of row 0; row r stands at first_position + r
  int window = 0;          // a row sees so many positions, its own included; 0: all up to its own
  float scale = 1;
  float cap = 0;           // scores become cap * tanh(score / cap); 0: they stay
  int span_begin = 0;      // first position of the span, a multiple of 256
  // The span's pages, in order, of one layer and one key/value head; those without a visible position may be null.
  const std::byte* const* pages = nullptr;  // [16]
  // Decode: the pages [16] of the span that is read next, null where there is none; integer kernels fetch them from
  // memory while they compute.
  const std::byte* const* ahead = nullptr;
};

// Running softmax of num_rows * group queries. A query that has seen no position has sum 0.
struct AttentionState {
  float* max = nullptr;  // [queries]
  float* sum = nullptr;  // [queries]
  float* out = nullptr;  // [queries, padded16(head_dim)], not yet divided by sum
};

// Rules 6, 7 and 10 for one format of the cache's pages.
struct AttentionKernels {
  // Keys and values [num_positions, stride] of one head into one page's slots first_slot, first_slot + 1, ...; padding
  // lanes are written as zero. False where a value is not finite or rounds beyond the format's range.
  bool (*store_page)(const float* keys, const float* values, int stride, int num_positions, int head_dim,
                     int first_slot, std::byte* page);
  // One span: writes state.max, state.sum, state.out of this span alone. attend_decode: num_rows == 1.
  void (*attend_prefill)(const AttentionSpan& span, const AttentionState& state, std::byte* scratch);
  void (*attend_decode)(const AttentionSpan& span, const AttentionState& state, std::byte* scratch);
};

struct KernelTable {
  const char* name;

  // [rows, cols] floats -> codes (rule 3). lo == null in `out`: one plane. poisoned[r] = 1 where row r has a value
  // that is not finite, else untouched; such a row's codes are all 0.
  void (*quantize)(const float* x, int x_stride, const QuantizedRows& out, std::uint8_t* poisoned);

  // Rule 4. out[r * out_stride + o] for every row r and every output o of panels [first_panel, first_panel + num_panels)
  // (o counts from the matrix's first output; whole panels are written). For every quantized type.
  using QuantizedProduct = void (*)(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x,
                                    float* out, int out_stride, std::byte* scratch);
  QuantizedProduct many_rows;
  QuantizedProduct one_row;  // x.num_rows == 1; the same bits
  // Rule 5, for f32, f16 and bf16 weights.
  using FloatProduct = void (*)(const PackedMatrix& weights, int first_panel, int num_panels, const float* x, int x_stride,
                                int num_rows, float* out, int out_stride);
  FloatProduct float_rows;

  // out = x / sqrt(mean(x^2) + eps) * weight, a row: p_i = fma(x, x, p_i) in 16 lanes, tree, ms = sum / float(cols),
  // inv = 1 / sqrt(ms + eps), out = (x * inv) * weight. out may be x.
  void (*rms_norm)(const float* x, int x_stride, const float* weight, float eps, int rows, int cols, float* out,
                   int out_stride);
  // Turns the halves of each head against each other: a = x[i], b = x[i + half], c = cos[i], s = sin[i], i < half:
  // x[i] = fma(-b, s, a * c), x[i + half] = fma(a, s, b * c). Dimensions from 2 * half on stay. One row.
  void (*rope)(float* x, int num_heads, int head_dim, const float* cos, const float* sin, int half);
  // gate[i] = gate / (1 + exp(-gate)) * up: e = exp(-gate); gate = (gate / (1 + e)) * up.
  void (*silu_mul)(float* gate, const float* up, std::size_t count);
  // tanh form: g2 = g * g; y = g * fma(k2, g2, k1), k1 = 2 * sqrt(2 / pi), k2 = k1 * 0.044715 rounded to float;
  // e = exp(-y); gate = (g / (1 + e)) * up.
  void (*gelu_mul)(float* gate, const float* up, std::size_t count);
  // g = min(gate, 7), u = clamp(up, -7, 7): e = exp(-(1.702 * g)); gate = (g / (1 + e)) * (u + 1).
  void (*clamped_silu_mul)(float* gate, const float* up, std::size_t count);
  // cap * tanh(x / cap): y = x / cap; e = exp(-(y + y)); x = ((1 - e) / (1 + e)) * cap.
  void (*soft_cap)(float* x, float cap, std::size_t count);
  void (*add)(float* x, const float* y, std::size_t count);     // x += y
  void (*add_scaled)(float* x, const float* y, float factor, std::size_t count);  // x = fma(y, factor, x)
  void (*scale)(float* x, float factor, std::size_t count);     // x *= factor
  void (*add_bias)(float* x, int x_stride, const float* bias, int rows, int cols);  // each row += bias

  AttentionKernels attention[kNumPageFormats];
  // state <- state merged with the next span's; a span of sum 0 does not exist, the first visible one is copied.
  void (*merge_spans)(const AttentionState& state, const AttentionState& span, int num_queries, int head_dim);
  // One query: result[d] = out[d] / sum, d < head_dim.
  void (*finish_attention)(const AttentionState& state, int num_queries, int head_dim, float* result, int result_stride);

  // Sum over ascending i of double(exp(logits[i] - max)), exp in float (rule 1), the sum in double (rule 9).
  // `weighted`, unless null: the same sum of exp(logits[i] - max) times double(logits[i] - max), where exp is not 0.
  double (*sum_exp)(const float* logits, int count, float max, double* weighted);
  // Index of the greatest (ties: the lowest); *finite = false if any is not finite.
  int (*argmax)(const float* logits, int count, bool* finite);

  // 16 file rows (null: a row of zeros) -> one panel; bytes in, bytes out.
  void (*pack_panel)(WeightType type, const std::byte* const rows[kPanelRows], int cols, std::byte* panel);

  // Scratch that one thread needs for matrices of at most max_cols columns and heads of head_dim; 64-byte aligned by the
  // caller.
  std::size_t (*scratch_bytes)(int max_cols, int head_dim);
};

// Bytes of one page of one layer and key/value head; a multiple of 64.
std::size_t page_bytes(PageFormat format, int head_dim);

// Bytes of one row of `cols` values, in the file and packed; a panel has 16 times the latter.
std::size_t file_row_bytes(WeightType type, int cols);
std::size_t row_bytes(WeightType type, int cols);
// Values that share a block in the file: cols is a multiple of it.
int block_values(WeightType type);

// "": the best level this machine has, or the one that COUPLET_KERNELS names; else the one named. Throws
// couplet::Error{unsupported} with the reason where the machine lacks it, {usage} for an unknown name.
const KernelTable& select_kernels(std::string_view forced = "");
// Every level there is, best first, and whether this machine can run it. `needs` is empty for reference.
struct LevelInfo {
  const char* name;
  const char* needs;  // "AVX2, FMA and F16C"
  bool runs;
};
int known_levels(LevelInfo levels[8]);
// The names of the levels that this machine can run, best first; reference is always the last.
int runnable_levels(const KernelTable* tables[8]);

}  // namespace couplet::kernels
