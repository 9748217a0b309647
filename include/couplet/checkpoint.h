#pragma once
// A model opened, a file or a folder: its headers are read and checked, its weights are mapped and not yet touched. Gives the
// tokenizer and the chat template, says what the file holds, and is what an Engine is loaded from.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "couplet/chat_template.h"
#include "couplet/packed_copy.h"
#include "couplet/precision.h"
#include "couplet/request.h"
#include "couplet/tokenizer.h"

namespace couplet {

struct TensorTypeSummary {
  std::string type;  // "Q4_1"
  int count = 0;
  std::uint64_t bytes = 0;
};

// How the checkpoint's makers want replies drawn; what it does not say is empty.
struct SamplingDefaults {
  std::optional<float> temperature, top_p, min_p, repetition_penalty;
  std::optional<int> top_k;
};

struct CheckpointSummary {
  std::string file_format;  // "GGUF v3", "safetensors", "tokenizer files"
  // Empty where there is a model. Else there is a tokenizer alone: why nothing can be run, and what to do; of what follows
  // the name alone is known.
  std::string lacks_weights;
  std::string family;       // "llama"
  std::string name;
  std::uint64_t file_bytes = 0;
  std::uint64_t num_parameters = 0;
  int num_layers = 0, hidden_size = 0, intermediate_size = 0;
  int num_heads = 0, num_kv_heads = 0, head_dim = 0, vocab_size = 0;
  int context_length = 0, sliding_window = 0;  // positions; window 0: none
  std::uint64_t weights_bytes = 0;  // as the kernels read them: for some types more than in the file
  std::vector<TensorTypeSummary> tensor_types;
  std::string quantized_as;  // OpenOptions::quantize
  SamplingDefaults sampling;
};

// The model's own defaults; where it says nothing at all, SamplingOptions'. One that says something means the neutral
// values for what it leaves out, as its makers' own tools do.
SamplingOptions default_sampling(const SamplingDefaults& own);

struct OpenOptions {
  // The named way to cut a text before byte-level BPE ("llama-bpe"), where the file's own is wrong or not known; empty:
  // the file's.
  std::string pre_tokenizer = "";
  // One of weight_types() (convert.h): float matrices are quantized as they are read, to the very bits of a file that
  // convert_checkpoint() writes; part of an answer's identity. Empty: all stays as it is.
  std::string quantize = "";
};

class Checkpoint {
 public:
  // A GGUF file (of a split one, any part), or a Hugging Face folder, which may hold a tokenizer alone. Throws Error that
  // names the key or tensor.
  static std::shared_ptr<const Checkpoint> open(const std::filesystem::path& path, const OpenOptions& options = {});
  virtual ~Checkpoint() = default;

  virtual const CheckpointSummary& summary() const = 0;
  // These two, and Engine::load(), throw Error{not_found} where the summary lacks weights.
  virtual std::uint64_t cache_bytes_per_position(CacheFormat format, Precision precision) const = 0;
  // What an engine with this EngineOptions::packed_folder would find: none, absent or present.
  virtual PackedCopy packed_copy(const std::string& packed_folder) const = 0;
  // Names the weights, 16 hexadecimal digits: the same for a copy of the files elsewhere, another for other weights,
  // metadata or OpenOptions::quantize. Reads a few megabytes, spread over the files.
  virtual std::string weights_id() const = 0;
  virtual const Tokenizer& tokenizer() const = 0;
  virtual const ChatTemplate* chat_template() const = 0;  // null: the file has none
};

}  // namespace couplet
