#pragma once
// Which type each tensor gets under the name of a mix ("q4_k_m"): the rules by which llama.cpp names its files, so that the
// same name means the same types. Vectors, norms and routers stay F32; the head has more bits than the rest, and in some
// mixes attention values and ffn_down of the outer layers and of every third between have too.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/checkpoint_file.h"
#include "formats/quant_types.h"

namespace couplet::formats {

struct Mix {
  std::string_view name;
  TensorType type;          // of most matrices
  std::uint32_t file_type;  // GGUF's number for it, "general.file_type"
};

std::span<const Mix> all_mixes();
// One of them, or as-is, which leaves matrices what they are. Throws Error{usage} that lists them.
const Mix& find_mix(std::string_view name);

class MixRules {
 public:
  // The file's facts are read, `file` itself isn't kept.
  MixRules(const CheckpointFile& file, const Mix& mix);

  const Mix& mix() const { return *mix_; }
  TensorType type_of(const Tensor& tensor) const;

 private:
  TensorType wanted_type(std::string_view name, bool is_head) const;
  TensorType values_type(int layer) const;
  TensorType down_type(int layer) const;
  TensorType output_type() const;
  bool is(std::string_view name) const { return mix_->name == name; }
  bool has_more_bits(int layer) const;

  const Mix* mix_;
  bool tied_;                  // the embeddings are the head too
  bool shares_widely_;         // values, between query heads
  bool is_large_;              // of 80 layers
  int num_layers_, num_experts_;
};

}  // namespace couplet::formats
