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
  const Part part{&into, rows};
  matrices(name, cols, {&part, 1});
}

void WeightLoader::matrices(const std::string& name, int cols, std::span<const Part> parts) {
  int rows = 0;
  for (const Part& part : parts) rows += part.rows;
  const Tensor& found = tensor(name, rows, cols);
  int first_row = 0;
  for (const Part& part : parts) {
    plan_.add(found, first_row, part.rows, *part.into);
    first_row += part.rows;
  }
}

const float* WeightLoader::values(const Tensor& tensor, int size) {
  if (formats::info(tensor.type).block_values != 1)
    throw Error(ErrorKind::unsupported, "[weights] tensor \"" + std::string(tensor.name) +
                                            "\": expected F32, F16 or BF16, file says " + formats::info(tensor.type).name);
  const auto count = static_cast<std::size_t>(size);
  auto in_file = std::make_unique<float[]>(count), values = std::make_unique<float[]>(count);
  std::vector<std::byte> made(tensor.row_bytes());
  for (std::uint64_t row = 0, length = tensor.row_length(); row < tensor.num_rows(); ++row)
    formats::dequantize(tensor.type, tensor.row(row, made.data()), length, in_file.get() + row * length);
  for (int i = 0; i < size; ++i)
    values[static_cast<std::size_t>(i)] = in_file[static_cast<std::size_t>(plan_.file_row(i, tensor.rope_order))];
  weights_->vectors.push_back(std::move(values));
  return weights_->vectors.back().get();
}

void WeightLoader::vector(const std::string& name, int size, Vector& into) { into = values(tensor(name, 1, size), size); }

void WeightLoader::layer_matrix(int layer, const char* name, int rows, int cols, PackedMatrix& into) {
  matrix("blk." + std::to_string(layer) + "." + name + ".weight", rows, cols, into);
}

void WeightLoader::layer_vector(int layer, const char* name, int size, Vector& into) {
  vector("blk." + std::to_string(layer) + "." + name + ".weight", size, into);
}

void WeightLoader::layer_bias(int layer, const char* name, int size, Vector& into) {
  vector("blk." + std::to_string(layer) + "." + name + ".bias", size, into);
}

void WeightLoader::optional_layer_bias(int layer, const char* name, int size, Vector& into) {
  if (file_->find("blk." + std::to_string(layer) + "." + name + ".bias") != nullptr) layer_bias(layer, name, size, into);
}

void WeightLoader::layer_attention(int layer, LayerWeights& into) {
  const ModelConfig& c = *config_;
  layer_matrix(layer, "attn_q", c.q_size(), c.hidden_size, into.q);
  layer_matrix(layer, "attn_k", c.kv_size(), c.hidden_size, into.k);
  layer_matrix(layer, "attn_v", c.kv_size(), c.hidden_size, into.v);
  layer_matrix(layer, "attn_output", c.hidden_size, c.q_size(), into.o);
}

void WeightLoader::layer_feed_forward(int layer, LayerWeights& into) {
  const ModelConfig& c = *config_;
  layer_matrix(layer, "ffn_gate", c.intermediate_size, c.hidden_size, into.gate);
  layer_matrix(layer, "ffn_up", c.intermediate_size, c.hidden_size, into.up);
  layer_matrix(layer, "ffn_down", c.hidden_size, c.intermediate_size, into.down);
}

void WeightLoader::layer_latent_query(int layer, const char* name, int cols, PackedMatrix& into) {
  const ModelConfig& c = *config_;
  const int head = c.latent.key_dim + c.rope_dims, rows = c.num_heads * head;
  const Tensor& found = tensor("blk." + std::to_string(layer) + "." + name + ".weight", rows, cols);
  plan_.add(found, 0, rows, into, {head, c.latent.key_dim, c.rope_dims});
}

void WeightLoader::layer_latent_heads(int layer, LayerWeights& into) {
  const LatentConfig& latent = config_->latent;
  const int heads = config_->num_heads;
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  into.key_up.resize(static_cast<std::size_t>(heads));
  into.value_up.resize(static_cast<std::size_t>(heads));
  if (file_->find(prefix + "attn_kv_b.weight") != nullptr) {
    const int head_rows = latent.key_dim + latent.value_dim;
    const Tensor& both = tensor(prefix + "attn_kv_b.weight", heads * head_rows, latent.rank);
    for (int head = 0; head < heads; ++head) {
      const auto i = static_cast<std::size_t>(head);
      plan_.add_transposed(both, head * head_rows, latent.key_dim, into.key_up[i]);
      plan_.add(both, head * head_rows + latent.key_dim, latent.value_dim, into.value_up[i]);
    }
    return;
  }
  const auto load = [&](const char* name, int rows, int cols, std::vector<PackedMatrix>& matrices_of) {
    const Tensor& found = tensor(prefix + name + ".weight", heads * rows, cols);
    for (int head = 0; head < heads; ++head) plan_.add(found, head * rows, rows, matrices_of[static_cast<std::size_t>(head)]);
  };
  load("attn_k_b", latent.rank, latent.key_dim, into.key_up);
  load("attn_v_b", latent.value_dim, latent.rank, into.value_up);
}

void WeightLoader::layer_matrices(int layer, const char* name, int cols, std::initializer_list<Part> parts) {
  matrices("blk." + std::to_string(layer) + "." + name + ".weight", cols, {parts.begin(), parts.size()});
}

void WeightLoader::layer_experts(int layer, LayerWeights& into) {
  const ModelConfig& c = *config_;
  const std::string prefix = "blk." + std::to_string(layer) + ".";
  into.experts.resize(static_cast<std::size_t>(c.num_experts));
  layer_matrix(layer, "ffn_gate_inp", c.num_experts, c.hidden_size, into.router);
  const auto load = [&](const char* name, int rows, int cols, PackedMatrix ExpertWeights::*member) {
    std::vector<Part> parts;
    for (ExpertWeights& expert : into.experts) parts.push_back({&(expert.*member), rows});
    matrices(prefix + name + ".weight", cols, parts);
  };
  load("ffn_gate_exps", c.expert_size, c.hidden_size, &ExpertWeights::gate);
  load("ffn_up_exps", c.expert_size, c.hidden_size, &ExpertWeights::up);
  load("ffn_down_exps", c.hidden_size, c.expert_size, &ExpertWeights::down);
}

void WeightLoader::layer_shared_expert(int layer, LayerWeights& into) {
  const ModelConfig& c = *config_;
  layer_matrix(layer, "ffn_gate_shexp", c.shared_expert_size, c.hidden_size, into.gate);
  layer_matrix(layer, "ffn_up_shexp", c.shared_expert_size, c.hidden_size, into.up);
  layer_matrix(layer, "ffn_down_shexp", c.hidden_size, c.shared_expert_size, into.down);
}

void WeightLoader::layer_expert_biases(int layer, LayerWeights& into) {
  const ModelConfig& c = *config_;
  layer_bias(layer, "ffn_gate_inp", c.num_experts, into.router_bias);
  const auto load = [&](const char* name, int size, Vector ExpertWeights::*member) {
    const Tensor& found = tensor("blk." + std::to_string(layer) + "." + name + ".bias", c.num_experts, size);
    const float* all = values(found, c.num_experts * size);
    for (ExpertWeights& expert : into.experts) expert.*member = all, all += size;
  };
  load("ffn_gate_exps", c.expert_size, &ExpertWeights::gate_bias);
  load("ffn_up_exps", c.expert_size, &ExpertWeights::up_bias);
  load("ffn_down_exps", c.hidden_size, &ExpertWeights::down_bias);
}

void WeightLoader::refuse_unused() const {
  std::vector<const Tensor*> used = used_;
  for (const char* name : {"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"})
    if (const Tensor* read_with_config = file_->find(name)) used.push_back(read_with_config);
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
  if (weights->panels.size() == 0) {
    make_panels(plan, copy, threads, kernels, options, *weights);
    file.refuse_spoiled_rows();
    for (const formats::FilePart& part : file.parts()) file.drop(part.bytes);  // what rows were made of
  }
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
