#pragma once
// The weights, ready to multiply: matrices packed into panels (kernels/packed.h) that lie in one stretch of memory, or of a
// copy on disk (packed_file.h); vectors as floats. The embedding table stays in the file: a step reads a few of its rows.

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/memory.h"
#include "base/thread_pool.h"
#include "couplet/packed_copy.h"
#include "formats/checkpoint_file.h"
#include "kernels/kernels.h"
#include "model/config.h"
#include "model/packed_file.h"
#include "model/packing.h"

namespace couplet::model {

using kernels::PackedMatrix;

// A weight vector; null where the family has none.
using Vector = const float*;

// The gated feed-forward of one expert.
struct ExpertWeights {
  PackedMatrix gate, up, down;
  Vector gate_bias = nullptr, up_bias = nullptr, down_bias = nullptr;
};

struct LayerWeights {
  PackedMatrix q, k, v, o, gate, up, down, router;
  Vector q_bias = nullptr, k_bias = nullptr, v_bias = nullptr, o_bias = nullptr, router_bias = nullptr;
  Vector sinks = nullptr;  // [num_heads]
  std::vector<ExpertWeights> experts;  // where there are any, gate, up and down are those of the shared expert
  Vector expert_bias = nullptr;        // [num_experts], for their choice alone
  // Latent attention: queries and keys with values, compressed; then each head's matrices (Ops::take_in_keys).
  PackedMatrix query_down, latent_down;
  Vector query_norm = nullptr, latent_norm = nullptr;
  std::vector<PackedMatrix> key_up, value_up;
  Vector attention_norm = nullptr, q_norm = nullptr, k_norm = nullptr, post_attention_norm = nullptr;
  Vector ffn_norm = nullptr, post_ffn_norm = nullptr;
};

struct Weights {
  std::vector<LayerWeights> layers;
  Vector output_norm = nullptr;
  PackedMatrix head;                          // [vocab_size, hidden_size]; the embeddings again where they are tied
  const formats::Tensor* embedding = nullptr;  // [vocab_size, hidden_size], file rows
  const formats::CheckpointFile* file = nullptr;  // the embedding's
  std::uint64_t packed_bytes = 0;
  PackedCopy copy;  // what became of it

  MappedMemory panels;
  std::vector<std::unique_ptr<float[]>> vectors;
};

// Finds a layer's tensors by the names that a family gives, checks each shape, and plans what is to be packed.
class WeightLoader {
 public:
  WeightLoader(const formats::CheckpointFile& file, const ModelConfig& config, Weights& weights, PackingPlan& plan)
      : file_(&file), config_(&config), weights_(&weights), plan_(plan) {}

  const ModelConfig& config() const { return *config_; }
  // "attn_q" of layer 3 is the tensor "blk.3.attn_q.weight".
  void layer_matrix(int layer, const char* name, int rows, int cols, PackedMatrix& into);
  void layer_vector(int layer, const char* name, int size, Vector& into);
  // "attn_q" of layer 3 is the tensor "blk.3.attn_q.bias". The optional one may be missing: null.
  void layer_bias(int layer, const char* name, int size, Vector& into);
  void optional_layer_bias(int layer, const char* name, int size, Vector& into);
  // Tensors that most families name alike: attn_q, attn_k, attn_v, attn_output; ffn_gate, ffn_up, ffn_down.
  void layer_attention(int layer, LayerWeights& into);
  void layer_feed_forward(int layer, LayerWeights& into);
  // The projection of latent attention's queries, "attn_q" or "attn_q_b", and the heads' matrices, "attn_k_b" and
  // "attn_v_b" or, in one as checkpoints have them, "attn_kv_b".
  void layer_latent_query(int layer, const char* name, int cols, PackedMatrix& into);
  void layer_latent_heads(int layer, LayerWeights& into);
  // One tensor that holds several matrices, one after the other.
  struct Part {
    PackedMatrix* into;
    int rows;
  };
  void layer_matrices(int layer, const char* name, int cols, std::initializer_list<Part> parts);
  // Router and experts, all of config().num_experts: "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps".
  void layer_experts(int layer, LayerWeights& into);
  void layer_expert_biases(int layer, LayerWeights& into);
  // "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp".
  void layer_shared_expert(int layer, LayerWeights& into);
  void matrix(const std::string& name, int rows, int cols, PackedMatrix& into);
  void vector(const std::string& name, int size, Vector& into);
  const formats::Tensor& tensor(const std::string& name, int rows, int cols);

  // Every tensor of the file must have been asked for: one that nothing reads would silently change the model.
  void refuse_unused() const;

 private:
  void matrices(const std::string& name, int cols, std::span<const Part> parts);
  const float* values(const formats::Tensor& tensor, int size);

  const formats::CheckpointFile* file_;
  const ModelConfig* config_;
  Weights* weights_;
  PackingPlan& plan_;
  std::vector<const formats::Tensor*> used_;
};

// Whether and where a packed copy is kept.
struct CopyOptions {
  std::filesystem::path folder = {};  // empty: none is
  std::uint64_t least_bytes = PackedFile::kLeastBytes;
  std::uint64_t spare_disk_bytes = PackedFile::kSpareDiskBytes;
};

std::unique_ptr<Weights> load_weights(const formats::CheckpointFile& file, const ModelConfig& config, ThreadPool& threads,
                                      const kernels::KernelTable& kernels, const CopyOptions& options = {});
// What load_weights would find: none, absent or present.
PackedCopy find_packed_copy(const formats::CheckpointFile& file, const ModelConfig& config, const CopyOptions& options);

}  // namespace couplet::model
