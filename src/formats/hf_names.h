#pragma once
// Hugging Face's tensor names in GGUF's words: "model.layers.3.self_attn.q_proj.weight" is "blk.3.attn_q.weight".

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hf_config.h"

namespace couplet::formats {

// Gates and ups of all experts lie in one tensor, in turns, or an expert's matrix lies turned over: every `step`-th column
// from `first` on is a row of GGUF's.
struct Columns {
  std::uint64_t first, step;
};

struct HfTensorName {
  std::string name;                 // GGUF's
  std::optional<int> expert = {};   // whose part of that tensor it is
  std::optional<Columns> columns = {};
};

// Of a model that sees images too: the name that the tensor has in a text model alone; nullopt: it is for images.
std::optional<std::string> text_part(std::string_view name);
// Of which layer it is; nullopt: of none.
std::optional<int> layer_of(std::string_view name);
// Of which tensors of GGUF's this is a part or the whole; none: no tensor of such a model is called so.
std::vector<HfTensorName> translate_name(const HfModelType& type, std::string_view name);
// GGUF's name of one whose rows lie in pairs in models that have such.
bool is_paired(std::string_view name);
// One that a checkpoint may hold and nobody needs: it is computed from the config, or is for activations of 8 bits.
bool is_ballast(std::string_view name);
// Whose scale it is: "<weight>_scale_inv" and "<weight>_scale" are "<weight>"'s, of F8; "<weight>_scales" is
// "<weight>_blocks"', of MXFP4. Else nullopt.
std::optional<std::string> scaled_weight(std::string_view name);

}  // namespace couplet::formats
