#pragma once
// The parts of a tokenizer.json that are lists of steps. Each is flattened, each step checked; one that couplet hasn't
// is an Error{unsupported} that names it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.h"
#include "text/pipeline.h"

namespace couplet::text {

using JsonPart = std::optional<formats::JsonObject>;

std::vector<NormalizerStep> read_normalizer(const JsonPart& normalizer);
std::vector<CutStep> read_cut_steps(const JsonPart& pre_tokenizer);
// How the decoder reads the vocabulary's pieces.
Spelling read_spelling(const JsonPart& decoder);
// The ids that the post-processor puts before a text, not checked.
std::vector<std::uint64_t> read_prefix(const JsonPart& post_processor);

// Throws Error{format} where there is none.
std::string_view need_string(const formats::JsonObject& object, const char* key);
[[noreturn]] void refuse_unknown(const formats::JsonObject& part, const std::string& expected, std::string_view got);

}  // namespace couplet::text
