#pragma once
// What can be asked about text without generating any: tokens of a text or of a conversation, text of tokens, the prompt
// that a conversation becomes. The field names are llama.cpp's and vLLM's, both.

#include "server/json.h"
#include "server/served_model.h"

namespace couplet::server {

Json tokenize(const Json& body, const ServedModel& model);
Json detokenize(const Json& body, const ServedModel& model);
Json apply_template(const Json& body, const ServedModel& model);

}  // namespace couplet::server
