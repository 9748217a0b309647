#include "model/weights.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "couplet/error.h"
#include "model/families/family.h"

namespace couplet::model {
namespace {

using formats::RopeOrder;
using formats::Tensor;
using formats::TensorType;
using kernels::kPanelRows;
using kernels::WeightType;

WeightType weight_type(TensorType type) {
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
  }
  throw Fault("tensor type without a kernel");
}

std::string shape(std::uint64_t rows, std::uint64_t cols) { return std::to_string(rows) + " x " + std::to_string(cols); }

// File row that holds output `row`: where the file interleaves the halves of a head, they are put apart again.
int file_row(int row, RopeOrder order, int head_dim, int rope_dims) {
  if (order == RopeOrder::halves) return row;
  const int in_head = row % head_dim, half = rope_dims / 2;
  if (in_head >= rope_dims) return row;
  return row - in_head + 2 * (in_head % half) + in_head / half;
}

std::size_t round_up(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

const Tensor& WeightLoader::tensor(const std::string& name, int rows, int cols) {
  const Tensor* found = file_->find(name);
  const std::string expected = shape(static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(cols));
  if (found == nullptr)
    throw Error(ErrorKind::format, "[weights] tensor \"" + name + "\": expected " + expected + ", file has none");
  if (found->num_rows() != static_cast<std::uint64_t>(rows) || found->row_length() != static_cast<std::uint64_t>(cols))
    throw Error(ErrorKind::format, "[weights] tensor \"" + name + "\": expected " + expected + ", file says " +
                                       shape(found->num_rows(), found->row_length()));
  used_.push_back(found);
  return *found;
}

void WeightLoader::matrix(const std::string& name, int rows, int cols, PackedMatrix& into) {
  const Tensor& found = tensor(name, rows, cols);
  into.type = weight_type(found.type);
  into.rows = rows;
  into.cols = cols;
  into.panel_bytes = kernels::row_bytes(into.type, cols) * kPanelRows;
  pending_.push_back({&found, &into});
}

void WeightLoader::vector(const std::string& name, int size, Vector& into) {
  const Tensor& found = tensor(name, 1, size);
  if (kernels::is_quantized(weight_type(found.type)))
    throw Error(ErrorKind::unsupported, "[weights] tensor \"" + name + "\": expected F32, F16 or BF16, file says " +
                                            formats::info(found.type).name);
  auto values = std::make_unique<float[]>(static_cast<std::size_t>(size));
  formats::dequantize(found.type, found.bytes.data(), static_cast<std::size_t>(size), values.get());
  into = values.get();
  weights_->vectors.push_back(std::move(values));
}

void WeightLoader::layer_matrix(int layer, const char* name, int rows, int cols, PackedMatrix& into) {
  matrix("blk." + std::to_string(layer) + "." + name + ".weight", rows, cols, into);
}

void WeightLoader::layer_vector(int layer, const char* name, int size, Vector& into) {
  vector("blk." + std::to_string(layer) + "." + name + ".weight", size, into);
}

void WeightLoader::refuse_unused() const {
  std::vector<const Tensor*> used = used_;
  std::sort(used.begin(), used.end());
  for (const Tensor& tensor : file_->tensors())
    if (!std::binary_search(used.begin(), used.end(), &tensor))
      throw Error(ErrorKind::unsupported, "[weights] tensor \"" + std::string(tensor.name) + "\": family \"" +
                                              config_->family->name + "\" as built here has no use for it");
}

void WeightLoader::pack(ThreadPool& threads, const kernels::KernelTable& kernels) {
  std::size_t total = 0;
  for (const Pending& p : pending_) total += round_up(static_cast<std::size_t>(p.into->num_panels()) * p.into->panel_bytes);
  weights_->panels = MappedMemory(total, "packed weights");
  weights_->packed_bytes = total;

  struct Panel {
    const Pending* pending;
    int index;
  };
  std::vector<Panel> panels;
  std::size_t offset = 0;
  for (const Pending& p : pending_) {
    p.into->panels = weights_->panels.data() + offset;
    offset += round_up(static_cast<std::size_t>(p.into->num_panels()) * p.into->panel_bytes);
    for (int i = 0; i < p.into->num_panels(); ++i) panels.push_back({&p, i});
  }

  constexpr int kPanelsAnItem = 64;
  const int num_items = (static_cast<int>(panels.size()) + kPanelsAnItem - 1) / kPanelsAnItem;
  threads.parallel_for(num_items, [&](int item, int) {
    const std::size_t begin = static_cast<std::size_t>(item) * kPanelsAnItem;
    const std::size_t end = std::min(begin + kPanelsAnItem, panels.size());
    for (std::size_t i = begin; i < end; ++i) {
      const PackedMatrix& matrix = *panels[i].pending->into;
      const Tensor& source = *panels[i].pending->tensor;
      const std::size_t row_bytes = matrix.panel_bytes / kPanelRows;
      std::array<const std::byte*, kPanelRows> rows{};
      for (int r = 0; r < kPanelRows; ++r) {
        const int row = panels[i].index * kPanelRows + r;
        if (row >= matrix.rows) continue;
        const int in_file = file_row(row, source.rope_order, config_->head_dim, config_->rope_dims);
        rows[static_cast<std::size_t>(r)] = source.bytes.data() + static_cast<std::size_t>(in_file) * row_bytes;
      }
      std::byte* out = const_cast<std::byte*>(matrix.panels) + static_cast<std::size_t>(panels[i].index) * matrix.panel_bytes;
      kernels.pack_panel(matrix.type, rows.data(), matrix.cols, out);
    }
  });
  for (const Pending& p : pending_) file_->drop(*p.tensor);
  pending_.clear();
}

std::unique_ptr<Weights> load_weights(const formats::CheckpointFile& file, const ModelConfig& config, ThreadPool& threads,
                                      const kernels::KernelTable& kernels) {
  auto weights = std::make_unique<Weights>();
  WeightLoader loader(file, config, *weights);
  weights->layers.resize(static_cast<std::size_t>(config.num_layers));
  for (int layer = 0; layer < config.num_layers; ++layer)
    config.family->load_layer(loader, layer, weights->layers[static_cast<std::size_t>(layer)]);
  weights->embedding = &loader.tensor("token_embd.weight", config.vocab_size, config.hidden_size);
  loader.vector("output_norm.weight", config.hidden_size, weights->output_norm);
  const bool tied = file.find("output.weight") == nullptr;
  loader.matrix(tied ? "token_embd.weight" : "output.weight", config.vocab_size, config.hidden_size, weights->head);
  loader.refuse_unused();
  file.read_ahead();
  loader.pack(threads, kernels);
  return weights;
}

}  // namespace couplet::model
