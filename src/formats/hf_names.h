#pragma once
// Hugging Face's tensor names in GGUF's words: "model.layers.3.self_attn.q_proj.weight" is "blk.3.attn_q.weight".

#include <optional>
#include <string>
#include <string_view>

#include "formats/hf_config.h"

namespace couplet::formats {

struct HfTensorName {
  std::string name;         // GGUF's
  std::optional<int> expert;  // whose part of that tensor it is
};

// nullopt: no tensor of such a model is called so.
std::optional<HfTensorName> translate_name(const HfModelType& type, std::string_view name);
// One that a checkpoint may hold and nobody needs: it is computed from the config.
bool is_ballast(std::string_view name);

}  // namespace couplet::formats
