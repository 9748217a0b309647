#pragma once
// The whole of a completion's request: one prompt or several, as text or as token ids.

#include "server/generation_plan.h"

namespace couplet::server {

GenerationPlan read_completion_request(const Json& body, const ServedModel& model);

// A text's ids, with BOS where the model wants one, once; `special` reads control tokens out of the text.
std::vector<TokenId> text_ids(const Tokenizer& tokenizer, std::string_view text, TokenizeOptions options);

}  // namespace couplet::server
