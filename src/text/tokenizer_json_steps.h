#pragma once
// The parts of a tokenizer.json that are lists of steps. Each is flattened, each step checked; one that couplet hasn't
// is an Error{unsupported} that names it.

#include <optional>
#include <string_view>
#include <vector>

#include "text/json_view.h"
#include "text/pipeline.h"

namespace couplet::text {

std::vector<NormalizerStep> read_normalizer(const std::optional<JsonView>& normalizer);
std::vector<CutStep> read_cut_steps(const std::optional<JsonView>& pre_tokenizer);
// How the decoder reads the vocabulary's pieces.
Spelling read_spelling(const std::optional<JsonView>& decoder);
// The tokens that the post-processor puts before a text.
std::vector<std::string_view> read_prefix(const std::optional<JsonView>& post_processor);

}  // namespace couplet::text
