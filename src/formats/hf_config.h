#pragma once
// What a Hugging Face folder's config.json means, under GGUF's keys: which family it is, its numbers, and the factors of
// its rope as tensors. One table says what each model_type has.

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
};

struct HfConfig {
  struct Factors {
    std::string name;  // "rope_freqs.weight"
    std::vector<float> values;
  };
  const HfModelType* type = nullptr;
  bool tied = false;
  KeyValues metadata;
  std::vector<Factors> factors;
};

// Throws Error{unsupported} for a model_type that isn't in the table, or an option that GGUF's keys can't say; Error{format}
// for a key of another kind.
HfConfig read_hf_config(const JsonObject& config);

// generation_config.json: how its makers want replies drawn.
void add_sampling_keys(const JsonObject& generation, KeyValues& metadata);

}  // namespace couplet::formats
