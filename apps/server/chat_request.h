#pragma once
// A conversation out of a request's JSON, as the chat template takes it, and the whole of a chat completion's request.

#include "server/generation_plan.h"

namespace couplet::server {

// {"messages", "add_generation_prompt", "continue_final_message", the template's variables}: content in parts made one
// text, roles checked. Throws ApiError with the path of what is wrong.
Json read_conversation(const Fields& fields, const ServedModel& model);
// The conversation's ids through the model's template, exactly as a generation gets them.
std::vector<TokenId> conversation_ids(const Json& conversation, const ServedModel& model);
std::string conversation_text(const Json& conversation, const ServedModel& model);

GenerationPlan read_chat_request(const Json& body, const ServedModel& model);

}  // namespace couplet::server
