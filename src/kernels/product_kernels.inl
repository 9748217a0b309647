// Quantization and products that every level declares, under the names and the contracts of KernelTable (kernels.h).
// Included inside a level's namespace by <level>/product_kernels.h.

void quantize(const float* x, int x_stride, const QuantizedRows& out, std::uint8_t* poisoned);

// Any quantized type.
void many_rows(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
               int out_stride, std::byte* scratch);
void one_row(const PackedMatrix& weights, int first_panel, int num_panels, const QuantizedRows& x, float* out,
             int out_stride, std::byte* scratch);
// The part of KernelTable::scratch_bytes that many_rows and one_row need.
std::size_t product_scratch_bytes(int max_cols);

// F32, F16 and BF16.
void float_rows(const PackedMatrix& weights, int first_panel, int num_panels, const float* x, int x_stride,
                int num_rows, float* out, int out_stride);
