#pragma once
// The numbers that a checkpoint's metadata fixes, checked: a config that exists can be run.

#include <cstdint>
#include <string>
#include <vector>

#include "formats/checkpoint_file.h"
#include "model/rope_config.h"

namespace couplet::model {

struct Family;

// What may differ from layer to layer.
struct LayerConfig {
  int window = 0;      // positions a row sees, its own included; 0: all before it
  int rope_table = 0;  // index into ModelConfig::ropes
};

// Multi-head latent attention: the cache holds one compressed vector a position, of which each head makes its key and
// value, and a part of the key that rope turns and all heads share.
struct LatentConfig {
  int rank = 0;        // size of the compressed vector
  int query_rank = 0;  // of what queries are made of; 0: of the row itself
  int key_dim = 0;     // of a head's key, without the part that is turned
  int value_dim = 0;   // of a head's value
};

struct ModelConfig {
  const Family* family = nullptr;
  std::string name;
  int num_layers = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int vocab_size = 0;
  int context_length = 0;
  float rms_norm_eps = 0;
  int rope_begin = 0;                // the first dimension of a head that rope turns
  int rope_dims = 0;                 // how many it turns; even
  std::vector<RopeConfig> ropes;     // one a table
  float embedding_scale = 1;
  float attention_scale = 1;
  float attention_cap = 0;           // scores are capped softly at it; 0: they aren't
  float logit_scale = 1;             // logits are multiplied by it, then capped
  float logit_cap = 0;
  float residual_scale = 1;          // what a layer adds is multiplied by it

  int num_experts = 0;               // 0: one feed-forward for all
  int num_used_experts = 0;          // of each row
  int expert_size = 0;               // an expert's intermediate size
  int shared_expert_size = 0;        // of the expert that every row has besides; 0: there is none
  int num_dense_layers = 0;          // the first layers, which have no experts
  bool sigmoid_experts = false;      // an expert's score is the sigmoid of its logit, not its share of all
  bool normalize_experts = true;     // the weights of a row's experts sum to 1
  float expert_scale = 1;            // and are multiplied by it
  int num_expert_groups = 1;         // experts are chosen from num_used_groups of them
  int num_used_groups = 1;
  LatentConfig latent;               // of families that have it
  std::vector<LayerConfig> layers;   // [num_layers]

  int q_size() const { return num_heads * head_dim; }
  int kv_size() const { return num_kv_heads * head_dim; }
};

// Throws Error{format} naming the key and what it holds, Error{unsupported} for a family or option not built here.
ModelConfig read_config(const formats::CheckpointFile& file);

// A metadata number under the family's prefix ("llama.block_count"): the one way to read one, so that every error
// names key, range and value.
class ConfigReader {
 public:
  ConfigReader(const formats::CheckpointFile& file, std::string prefix) : file_(&file), prefix_(std::move(prefix)) {}
  int required(const char* key, int least, int most) const;
  int optional(const char* key, int fallback, int least, int most) const;
  bool optional_bool(const char* key, bool fallback) const;
  double required_float(const char* key, double least, double most) const;
  double optional_float(const char* key, double fallback, double least, double most) const;
  const formats::CheckpointFile& file() const { return *file_; }
  std::string full(const char* key) const { return prefix_ + "." + key; }

 private:
  const formats::CheckpointFile* file_;
  std::string prefix_;
};

// The keys of heads: what a family takes that has none of its own.
void read_heads(const ConfigReader& reader, ModelConfig& config);
// The keys that experts have in every family; `size_key` holds an expert's intermediate size.
void read_experts(const ConfigReader& reader, const char* size_key, ModelConfig& config);

}  // namespace couplet::model
