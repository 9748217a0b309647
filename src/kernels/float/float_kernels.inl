// The float kernels that every level declares, under the names and the contracts of KernelTable (kernels.h).
// Included inside a level's namespace by <level>/float_kernels.h.

void rms_norm(const float* x, int x_stride, const float* weight, float eps, int rows, int cols, float* out,
              int out_stride);
void rope(float* x, int num_heads, int head_dim, const float* cos, const float* sin, int half);
void silu_mul(float* gate, const float* up, std::size_t count);
void gelu_mul(float* gate, const float* up, std::size_t count);
void clamped_silu_mul(float* gate, const float* up, std::size_t count);
void soft_cap(float* x, float cap, std::size_t count);
void add(float* x, const float* y, std::size_t count);
void add_scaled(float* x, const float* y, float factor, std::size_t count);
void scale(float* x, float factor, std::size_t count);
void add_bias(float* x, int x_stride, const float* bias, int rows, int cols);

bool store_f16(const float* keys, const float* values, int stride, int num_positions, int head_dim, int first_slot,
               std::byte* page);
void attend_prefill_f16(const AttentionSpan& span, const AttentionState& state, std::byte* scratch);
void attend_decode_f16(const AttentionSpan& span, const AttentionState& state, std::byte* scratch);
bool store_q16(const float* keys, const float* values, int stride, int num_positions, int head_dim, int first_slot,
               std::byte* page);
void attend_prefill_q16(const AttentionSpan& span, const AttentionState& state, std::byte* scratch);
void attend_decode_q16(const AttentionSpan& span, const AttentionState& state, std::byte* scratch);
bool store_q16_fine(const float* keys, const float* values, int stride, int num_positions, int head_dim, int first_slot,
                    std::byte* page);
void attend_prefill_q16_fine(const AttentionSpan& span, const AttentionState& state, std::byte* scratch);
void attend_decode_q16_fine(const AttentionSpan& span, const AttentionState& state, std::byte* scratch);
void merge_spans(const AttentionState& state, const AttentionState& span, int num_queries, int head_dim);
void finish_attention(const AttentionState& state, int num_queries, int head_dim, float* result,
                      int result_stride);
// What attention over pages of a format needs of KernelTable::scratch_bytes; a multiple of 64.
std::size_t f16_scratch_bytes(int head_dim);
std::size_t q16_scratch_bytes(int head_dim);

double sum_exp(const float* logits, int count, float max, double* weighted);
int argmax(const float* logits, int count, bool* finite);
