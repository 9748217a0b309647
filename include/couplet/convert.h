#pragma once
// A checkpoint written as one GGUF file, its matrices in a type that is asked for. The file has what this engine and other
// readers of GGUF need, tokenizer and template too, and each value is the same on every machine.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "couplet/checkpoint.h"

namespace couplet {

struct ConvertOptions {
  std::string type = "as-is";     // one of weight_types(), or as-is: what the input has
  bool allow_requantize = false;  // quantized weights may be quantized again, which loses more than doing it once
  bool replace = false;           // an output that is there already may go
  int num_threads = 0;            // 0: as many as the system has for us
  // Called now and then with output bytes; false stops, and no file is left.
  std::function<bool(std::uint64_t done, std::uint64_t total)> progress = {};
};

struct ConvertSummary {
  bool finished = false;  // false: stopped, and there is no file
  std::uint64_t input_bytes = 0, output_bytes = 0;
  std::vector<TensorTypeSummary> tensor_types;  // of the output, the largest first
};

// "q4_k_m", ..., "f16".
std::vector<std::string_view> weight_types();

// Reads a GGUF file or a Hugging Face folder. The output gets its name when it is whole. Throws Error.
ConvertSummary convert_checkpoint(const std::filesystem::path& input, const std::filesystem::path& output,
                                  const ConvertOptions& options);

}  // namespace couplet
