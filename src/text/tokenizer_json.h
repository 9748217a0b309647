#pragma once
// A Hugging Face folder's tokenizer.json as a Tokenizer. It is hostile input. What the file asks for and couplet hasn't is an
// error that names it; nothing is left out in silence.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "couplet/tokenizer.h"
#include "text/pipeline.h"

namespace couplet::text {

// What the files beside tokenizer.json say.
struct TokenizerNames {
  std::string_view bos = "", eos = "";          // as spelled; empty: not said
  std::optional<bool> adds_bos = std::nullopt;  // nothing: as the post-processor has it
  std::span<const std::int64_t> end_ids = {};   // that end an answer besides EOS
};

// Throws Error{format} for what breaks the rules, Error{unsupported} for what it doesn't know. With TokenizeOptions::bos
// comes what the post-processor puts before a text; what it puts after one is left out, since the answer goes on from there.
std::unique_ptr<Tokenizer> load_tokenizer_json(std::string_view tokenizer_json, const TokenizerNames& names = {});
// Calls `use` with what such a tokenizer is made of; views in it hold until `use` returns.
void with_tokenizer_parts(std::string_view tokenizer_json, const TokenizerNames& names,
                          const std::function<void(PipelineParts)>& use);

}  // namespace couplet::text
