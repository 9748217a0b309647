#pragma once
// The numbers that a checkpoint's metadata fixes, checked: a config that exists can be run.

#include <cstdint>
#include <string>
#include <vector>

#include "formats/checkpoint_file.h"

namespace couplet::model {

struct Family;

// What may differ from layer to layer.
struct LayerConfig {
  int window = 0;      // positions a row sees, its own included; 0: all before it
  int rope_table = 0;  // index into ModelConfig::rope_thetas
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
  std::vector<double> rope_thetas;   // one a table
  float embedding_scale = 1;
  float attention_scale = 1;
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
  double required_float(const char* key, double least, double most) const;
  double optional_float(const char* key, double fallback, double least, double most) const;
  const formats::CheckpointFile& file() const { return *file_; }
  std::string full(const char* key) const { return prefix_ + "." + key; }

 private:
  const formats::CheckpointFile* file_;
  std::string prefix_;
};

}  // namespace couplet::model
