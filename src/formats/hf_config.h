#pragma once
// What a Hugging Face folder's config.json means, under GGUF's keys: which family it is, its numbers, and the factors of
// its rope as tensors. One table says what each model_type has.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"
#include "formats/key_values.h"

namespace couplet::formats {

class HfConfigReader;

struct HfModelType {
  std::string_view name;    // config.json's model_type
  std::string_view family;  // general.architecture
  bool norms_around;        // attention and feed-forward have a norm behind them too
  bool norms_plus_one;      // the file holds w, the model multiplies by 1 + w
  bool tied;                // the head is the embedding table where config.json doesn't say
  void (*add_keys)(HfConfigReader& reader);  // those that not every family has
  // The model is the text part of one that sees images too: its config is under "text_config". Images are not read.
  bool has_vision = false;
  // Rows of queries and keys that rope turns against each other lie in pairs.
  bool has_pairs = false;
};

// quantization_config of F8 weights.
struct HfQuantization {
  bool is_f8 = false;
  std::uint64_t block_rows = 0, block_cols = 0;  // of a weight_scale_inv; 0: it has another shape
};

struct HfConfig {
  struct Factors {
    std::string name;  // "rope_freqs.weight"
    std::vector<float> values;
  };
  const HfModelType* type = nullptr;
  bool tied = false;
  HfQuantization quantization;
  std::optional<std::uint64_t> num_layers_used = {};  // the file has more behind them, which guess further tokens
  KeyValues metadata;
  std::vector<Factors> factors;
};

// Throws Error{unsupported} for a model_type that isn't in the table, or an option that GGUF's keys can't say; Error{format}
// for a key of another kind.
HfConfig read_hf_config(const JsonObject& config);

// generation_config.json: how its makers want replies drawn.
void add_sampling_keys(const JsonObject& generation, KeyValues& metadata);
// "eos_token_id" of generation_config.json or config.json, one id or several.
std::vector<std::int64_t> read_end_ids(const JsonObject& config);

}  // namespace couplet::formats
