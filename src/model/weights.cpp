#include "model/weights.h"

#include <algorithm>
#include <optional>

#include "couplet/error.h"
#include "model/families/family.h"

namespace couplet::model {
namespace {

using formats::Tensor;

std::string shape(std::uint64_t rows, std::uint64_t cols) { return std::to_string(rows) + " x " + std::to_string(cols); }

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
  plan_.add(tensor(name, rows, cols), into);
}

void WeightLoader::vector(const std::string& name, int size, Vector& into) {
  const Tensor& found = tensor(name, 1, size);
  if (formats::info(found.type).block_values != 1)
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

namespace {

std::unique_ptr<Weights> plan_weights(const formats::CheckpointFile& file, const ModelConfig& config, PackingPlan& plan) {
  auto weights = std::make_unique<Weights>();
  weights->file = &file;
  WeightLoader loader(file, config, *weights, plan);
  weights->layers.resize(static_cast<std::size_t>(config.num_layers));
  for (int layer = 0; layer < config.num_layers; ++layer)
    config.family->load_layer(loader, layer, weights->layers[static_cast<std::size_t>(layer)]);
  weights->embedding = &loader.tensor("token_embd.weight", config.vocab_size, config.hidden_size);
  loader.vector("output_norm.weight", config.hidden_size, weights->output_norm);
  const bool tied = file.find("output.weight") == nullptr;
  loader.matrix(tied ? "token_embd.weight" : "output.weight", config.vocab_size, config.hidden_size, weights->head);
  loader.refuse_unused();
  weights->packed_bytes = plan.bytes();
  return weights;
}

// Packs: into the copy where one is kept, else into memory.
void make_panels(const PackingPlan& plan, const std::optional<PackedFile>& copy, ThreadPool& threads,
                 const kernels::KernelTable& kernels, const CopyOptions& options, Weights& weights) {
  const MappedMemory scratch(static_cast<std::size_t>(threads.num_threads()) * plan.scratch_bytes(), "packing");
  const auto pack = [&](std::size_t begin, std::span<std::byte> out, int thread) {
    plan.pack(begin, out, kernels, scratch.data() + static_cast<std::size_t>(thread) * plan.scratch_bytes());
  };
  if (copy) try {
      weights.panels = copy->write(threads, pack, options.spare_disk_bytes);
      weights.copy.state = PackedCopyState::written;
      return;
    } catch (const Error& error) {
      weights.copy.state = PackedCopyState::failed;
      weights.copy.problem = error.what();
    }
  weights.panels = MappedMemory(plan.bytes(), "packed weights");
  const std::size_t piece_bytes = PackedFile::kPieceBytes, bytes = plan.bytes();
  threads.parallel_for(static_cast<int>((bytes + piece_bytes - 1) / piece_bytes), [&](int piece, int thread) {
    const std::size_t begin = static_cast<std::size_t>(piece) * piece_bytes;
    pack(begin, {weights.panels.data() + begin, std::min(piece_bytes, bytes - begin)}, thread);
  });
}

// Where a copy of these weights is or would be; nullopt: none is kept.
std::optional<PackedFile> copy_of(const formats::CheckpointFile& file, const PackingPlan& plan, const CopyOptions& options) {
  if (options.folder.empty() || file.parts().empty() || plan.bytes() < options.least_bytes) return std::nullopt;
  return PackedFile(options.folder, file, plan.fingerprint(), plan.bytes());
}

}  // namespace

std::unique_ptr<Weights> load_weights(const formats::CheckpointFile& file, const ModelConfig& config, ThreadPool& threads,
                                      const kernels::KernelTable& kernels, const CopyOptions& options) {
  PackingPlan plan(file, config);
  std::unique_ptr<Weights> weights = plan_weights(file, config, plan);
  for (const formats::FilePart& part : file.parts()) file.drop(part.bytes);  // the tokenizer's words, vectors
  const std::optional<PackedFile> copy = copy_of(file, plan, options);
  if (copy) {
    weights->copy = {PackedCopyState::mapped, copy->path().string(), plan.bytes(), ""};
    if (std::optional<MappedMemory> mapped = copy->map(threads)) weights->panels = std::move(*mapped);
  }
  if (weights->panels.size() == 0) make_panels(plan, copy, threads, kernels, options, *weights);
  plan.place(weights->panels.data());
  return weights;
}

PackedCopy find_packed_copy(const formats::CheckpointFile& file, const ModelConfig& config, const CopyOptions& options) try {
  PackingPlan plan(file, config);
  const std::unique_ptr<Weights> weights = plan_weights(file, config, plan);
  const std::optional<PackedFile> copy = copy_of(file, plan, options);
  if (!copy) return {};
  return {copy->present() ? PackedCopyState::present : PackedCopyState::absent, copy->path().string(), plan.bytes(), ""};
} catch (const Error&) {
  return {};  // what can't be loaded has no copy
}

}  // namespace couplet::model
