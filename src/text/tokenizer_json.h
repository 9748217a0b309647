#pragma once
// A Hugging Face folder's tokenizer.json, and the tokenizer_config.json beside it, as a Tokenizer. Both are hostile
// input. What the file asks for and couplet hasn't is an error that names it; nothing is left out in silence.

#include <memory>
#include <string_view>

#include "couplet/tokenizer.h"

namespace couplet::text {

// `config_json` may be empty: then only what tokenizer.json itself adds (BOS by its post-processor) is known. Throws
// Error{format} for what breaks the rules, Error{unsupported} for what it doesn't know. With TokenizeOptions::bos comes
// what the post-processor puts before a text; what it puts after one is left out, since the answer goes on from there.
std::unique_ptr<Tokenizer> load_tokenizer_json(std::string_view tokenizer_json, std::string_view config_json = {});

}  // namespace couplet::text
