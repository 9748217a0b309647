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
  int rope_dims = 0;                 // leading dimensions of a head that rope turns; even
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
  bool normalize_experts = true;     // the weights of a row's experts sum to 1
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

// The keys that experts have in every family; `size_key` holds an expert's intermediate size.
void read_experts(const ConfigReader& reader, const char* size_key, ModelConfig& config);

}  // namespace couplet::model
