#include "model/packing.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "formats/coded_blocks.h"

namespace couplet::model {
namespace {

using formats::CodedBlock;
using formats::RopeOrder;
using formats::Tensor;
using formats::TensorType;
using kernels::kPanelRows;
using kernels::PackedMatrix;
using kernels::WeightType;

constexpr std::size_t kAlignment = 64;

WeightType weight_type(TensorType type) {
  if (formats::is_coded(type)) return WeightType::coded;
  switch (type) {
    case TensorType::f32: return WeightType::f32;
    case TensorType::f16: return WeightType::f16;
    case TensorType::bf16: return WeightType::bf16;
    case TensorType::q4_0: return WeightType::q4_0;
    case TensorType::q4_1: return WeightType::q4_1;
    case TensorType::q5_0: return WeightType::q5_0;
    case TensorType::q5_1: return WeightType::q5_1;
    case TensorType::q8_0: return WeightType::q8_0;
    case TensorType::q4_k: return WeightType::q4_k;
    case TensorType::q5_k: return WeightType::q5_k;
    case TensorType::q6_k: return WeightType::q6_k;
    case TensorType::q2_k: return WeightType::q2_k;
    case TensorType::q3_k: return WeightType::q3_k;
    case TensorType::iq4_nl: return WeightType::iq4_nl;
    case TensorType::iq4_xs: return WeightType::iq4_xs;
    case TensorType::mxfp4: return WeightType::mxfp4;
    default: throw Fault("tensor type without a kernel");
  }
}

// 16 rows of a file -> a panel. Rows of a coded type become `coded` ones first, in `coded_rows`.
void pack(TensorType type, const std::array<const std::byte*, kPanelRows>& rows, int cols, std::byte* panel,
          const kernels::KernelTable& kernels, std::byte* coded_rows) {
  const WeightType packed = weight_type(type);
  if (packed != WeightType::coded) return kernels.pack_panel(packed, rows.data(), cols, panel);
  static_assert(sizeof(CodedBlock) == 164 && std::is_trivially_copyable_v<CodedBlock>);
  const auto blocks = static_cast<std::size_t>(cols / formats::kCodedValues);
  auto* to = reinterpret_cast<CodedBlock*>(coded_rows);
  std::array<const std::byte*, kPanelRows> coded{};
  for (std::size_t r = 0; r < rows.size(); ++r, to += blocks) {
    if (rows[r] == nullptr) continue;
    formats::to_coded_blocks(type, rows[r], static_cast<std::size_t>(cols), to);
    coded[r] = reinterpret_cast<const std::byte*>(to);
  }
  kernels.pack_panel(packed, coded.data(), cols, panel);
}

std::size_t coded_rows_bytes(TensorType type, int cols) {
  return formats::is_coded(type) ? kPanelRows * kernels::file_row_bytes(WeightType::coded, cols) : 0;
}

// A panel of fixed bytes as this build packs it: a layout that changes changes them.
std::uint64_t layout_sample(TensorType type) {
  const formats::TensorTypeInfo& info = formats::info(type);
  const int cols = static_cast<int>(2 * info.block_values);
  const std::size_t bytes = 2 * info.block_bytes;
  std::vector<std::byte> file(kPanelRows * bytes), panel(kPanelRows * kernels::row_bytes(weight_type(type), cols));
  std::vector<std::byte> coded_rows(coded_rows_bytes(type, cols));
  std::uint32_t state = 1;
  for (std::byte& byte : file) byte = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
  std::array<const std::byte*, kPanelRows> rows{};
  for (std::size_t r = 0; r < rows.size(); ++r) rows[r] = file.data() + r * bytes;
  pack(type, rows, cols, panel.data(), kernels::select_kernels("reference"), coded_rows.data());
  return XXH3_64bits(panel.data(), panel.size());
}

}  // namespace

std::uint64_t packed_bytes(const Tensor& tensor) {
  return tensor.num_rows() * kernels::row_bytes(weight_type(tensor.type), static_cast<int>(tensor.row_length()));
}

int PackingPlan::file_row(int row, RopeOrder order, const HeadRows& heads) {
  if (order == RopeOrder::halves) return row;
  const int in_rope = row % heads.size - heads.rope_begin, half = heads.rope_dims / 2;
  if (in_rope < 0 || in_rope >= heads.rope_dims) return row;
  return row - in_rope + 2 * (in_rope % half) + in_rope / half;
}

std::span<const std::byte> PackingPlan::Matrix::file_bytes(std::size_t from, std::size_t to) const {
  if (tensor->made != nullptr || transposed) return {};
  const std::size_t row_bytes = tensor->row_bytes(), all = static_cast<std::size_t>(into->rows) * row_bytes;
  const auto in_file = [&](std::size_t at) {
    const std::size_t panel = at / into->panel_bytes, rest = at % into->panel_bytes;
    return std::min(all, kPanelRows * row_bytes * panel + kPanelRows * row_bytes * rest / into->panel_bytes);
  };
  return tensor->bytes.subspan(static_cast<std::size_t>(first_row) * row_bytes + in_file(from), in_file(to) - in_file(from));
}

void PackingPlan::add(const Tensor& tensor, int first_row, int num_rows, PackedMatrix& into, const HeadRows& heads) {
  into.type = weight_type(tensor.type);
  into.rows = num_rows;
  into.cols = static_cast<int>(tensor.row_length());
  if (tensor.made != nullptr) most_made_bytes_ = std::max<std::size_t>(most_made_bytes_, kPanelRows * tensor.row_bytes());
  most_coded_bytes_ = std::max(most_coded_bytes_, coded_rows_bytes(tensor.type, into.cols));
  append({&tensor, first_row, &into, bytes_, heads, false});
}

void PackingPlan::add_transposed(const Tensor& tensor, int first_row, int num_rows, PackedMatrix& into) {
  into.type = WeightType::f32;
  into.rows = static_cast<int>(tensor.row_length());
  into.cols = num_rows;
  append({&tensor, first_row, &into, bytes_, heads_, true});
}

void PackingPlan::append(Matrix matrix) {
  matrix.into->panel_bytes = kernels::row_bytes(matrix.into->type, matrix.into->cols) * kPanelRows;
  most_panel_bytes_ = std::max(most_panel_bytes_, matrix.into->panel_bytes);
  bytes_ = (matrix.end() + kAlignment - 1) / kAlignment * kAlignment;
  matrices_.push_back(matrix);
}

std::uint64_t PackingPlan::fingerprint() const {
  std::vector<std::uint64_t> facts;
  for (int type = 0; type < formats::kNumTensorTypes; ++type) facts.push_back(layout_sample(static_cast<TensorType>(type)));
  for (const Matrix& matrix : matrices_) {
    facts.push_back(XXH3_64bits(matrix.tensor->name.data(), matrix.tensor->name.size()));
    for (const auto fact : {static_cast<std::size_t>(matrix.tensor->type), static_cast<std::size_t>(matrix.into->rows),
                            static_cast<std::size_t>(matrix.into->cols), matrix.into->panel_bytes, matrix.begin,
                            static_cast<std::size_t>(matrix.first_row), static_cast<std::size_t>(matrix.transposed)})
      facts.push_back(fact);
    if (matrix.tensor->rope_order == RopeOrder::pairs)
      for (int row = 0; row < matrix.heads.size; ++row)
        facts.push_back(static_cast<std::uint64_t>(file_row(row, RopeOrder::pairs, matrix.heads)));
    if (matrix.tensor->made == nullptr || matrix.first_row != 0) continue;
    std::vector<std::byte> row(matrix.tensor->row_bytes());  // who makes rows another way makes another first one
    matrix.tensor->row(0, row.data());
    facts.push_back(XXH3_64bits(row.data(), row.size()));
  }
  return XXH3_64bits(facts.data(), facts.size() * sizeof facts[0]);
}

void PackingPlan::pack_transposed(const Matrix& matrix, int panel, std::byte* out, const kernels::KernelTable& kernels) {
  const Tensor& tensor = *matrix.tensor;
  const formats::TensorTypeInfo& info = formats::info(tensor.type);
  const auto cols = static_cast<std::size_t>(matrix.into->cols);
  // The whole blocks that hold the panel's outputs, which are columns of the file.
  const auto first = static_cast<std::size_t>(panel * kPanelRows);
  const auto end = std::min<std::size_t>(first + kPanelRows, tensor.row_length());
  const std::size_t first_block = first / info.block_values, end_block = (end - 1) / info.block_values + 1;
  const std::size_t skipped = first - first_block * info.block_values;
  std::vector<std::byte> made_row(tensor.row_bytes());
  std::vector<float> blocks((end_block - first_block) * info.block_values), values(kPanelRows * cols);
  for (std::size_t k = 0; k < cols; ++k) {
    const std::byte* row = tensor.row(static_cast<std::uint64_t>(matrix.first_row) + k, made_row.data());
    formats::dequantize(tensor.type, row + first_block * info.block_bytes, blocks.size(), blocks.data());
    for (std::size_t i = first; i < end; ++i) values[(i - first) * cols + k] = blocks[skipped + i - first];
  }
  std::array<const std::byte*, kPanelRows> rows{};
  for (std::size_t i = 0; i < end - first; ++i) rows[i] = reinterpret_cast<const std::byte*>(values.data() + i * cols);
  kernels.pack_panel(WeightType::f32, rows.data(), matrix.into->cols, out);
}

// `rows_scratch` has room for a panel's rows as the file makes them, and behind those for coded ones.
void PackingPlan::pack_panel(const Matrix& matrix, int panel, std::byte* out, const kernels::KernelTable& kernels,
                             std::byte* rows_scratch) const {
  if (matrix.transposed) return pack_transposed(matrix, panel, out, kernels);
  std::array<const std::byte*, kPanelRows> rows{};
  for (int r = 0; r < kPanelRows; ++r) {
    const int row = panel * kPanelRows + r;
    if (row >= matrix.into->rows) continue;
    const auto in_file = static_cast<std::uint64_t>(file_row(matrix.first_row + row, matrix.tensor->rope_order, matrix.heads));
    rows[static_cast<std::size_t>(r)] =
        matrix.tensor->row(in_file, rows_scratch + static_cast<std::size_t>(r) * matrix.tensor->row_bytes());
  }
  model::pack(matrix.tensor->type, rows, matrix.into->cols, out, kernels, rows_scratch + most_made_bytes_);
}

// `begin` counts from the matrix's first byte; all of `out` is inside the matrix.
void PackingPlan::pack_matrix(const Matrix& matrix, std::size_t begin, std::span<std::byte> out,
                              const kernels::KernelTable& kernels, std::byte* scratch) const {
  const std::size_t panel_bytes = matrix.into->panel_bytes, end = begin + out.size();
  std::byte* const rows_scratch = scratch + most_panel_bytes_;
  for (std::size_t panel = begin / panel_bytes; panel * panel_bytes < end; ++panel) {
    const std::size_t first = panel * panel_bytes, last = first + panel_bytes;
    const int index = static_cast<int>(panel);
    if (first >= begin && last <= end) {
      pack_panel(matrix, index, out.data() + (first - begin), kernels, rows_scratch);
      continue;
    }
    pack_panel(matrix, index, scratch, kernels, rows_scratch);  // it reaches beyond `out`
    const std::size_t from = std::max(first, begin), to = std::min(last, end);
    std::memcpy(out.data() + (from - begin), scratch + (from - first), to - from);
  }
  drop_behind(matrix.file_bytes(begin, end));
}

// Reading brings neighbours in, also such as were dropped already: so what stands before is dropped with it.
void PackingPlan::drop_behind(std::span<const std::byte> read) const {
  constexpr std::ptrdiff_t kBehindBytes = std::ptrdiff_t{8} << 20;
  for (const formats::FilePart& part : file_->parts()) {
    const std::byte* const begin = part.bytes.data();
    if (read.data() < begin || read.data() >= begin + part.bytes.size()) continue;
    const std::ptrdiff_t behind = std::min(kBehindBytes, read.data() - begin);
    file_->drop({read.data() - behind, read.data() + read.size()});
  }
}

// Calls body(matrix, from, to) for each matrix that has packed bytes in [begin, end), with those it has there.
template <class Body>
void PackingPlan::for_matrices(std::size_t begin, std::size_t end, const Body& body) const {
  auto matrix = std::partition_point(matrices_.begin(), matrices_.end(), [&](const Matrix& m) { return m.end() <= begin; });
  for (; matrix != matrices_.end() && matrix->begin < end; ++matrix)
    body(*matrix, std::max(begin, matrix->begin), std::min(end, matrix->end()));
}

// The file's share of the packed bytes [begin, end).
void PackingPlan::read_ahead(std::size_t begin, std::size_t end) const {
  for_matrices(begin, end, [&](const Matrix& matrix, std::size_t from, std::size_t to) {
    file_->read_ahead(matrix.file_bytes(from - matrix.begin, to - matrix.begin));
  });
}

void PackingPlan::pack(std::size_t begin, std::span<std::byte> out, const kernels::KernelTable& kernels,
                       std::byte* scratch) const {
  constexpr std::size_t kAheadBytes = std::size_t{64} << 20;
  const std::size_t end = begin + out.size();
  read_ahead(begin == 0 ? 0 : begin + kAheadBytes, end + kAheadBytes);
  std::size_t at = begin;
  const auto fill_gap = [&](std::size_t to) {
    if (to > at) std::memset(out.data() + (at - begin), 0, to - at);
  };
  for_matrices(begin, end, [&](const Matrix& matrix, std::size_t from, std::size_t to) {
    fill_gap(from);
    pack_matrix(matrix, from - matrix.begin, out.subspan(from - begin, to - from), kernels, scratch);
    at = to;
  });
  fill_gap(end);
}

void PackingPlan::place(const std::byte* packed) const {
  for (const Matrix& matrix : matrices_) matrix.into->panels = packed + matrix.begin;
}

}  // namespace couplet::model
