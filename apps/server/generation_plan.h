#pragma once
// A request for text, read and checked: what goes to the engine, and how the reply is told. The same for both protocols of
// completions; made on the routes' pool of threads.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "couplet/request.h"
#include "server/fields.h"
#include "server/prompt_logprobs.h"
#include "server/served_model.h"

namespace couplet::server {

// What a reply tells beside its text.
struct ReplyOptions {
  bool stream = false;
  bool include_usage = false;     // one more chunk at a stream's end
  bool logprobs = false;
  int num_alternatives = 0;       // of each token, in logprobs
  bool token_ids = false;
  bool timings = false;           // at the end
  bool timings_per_token = false; // in each chunk too
  bool progress = false;          // chunks while the prompt is read
  bool ledger = false;            // what each step did
  bool echo = false;              // completions: the prompt before the reply
  std::string service_tier = "";  // "": not asked for
};

struct Prompt {
  std::vector<TokenId> ids;
  std::string text = "";  // echo's
};

struct GenerationPlan {
  ReplyOptions reply;
  std::vector<Prompt> prompts;
  int num_choices = 1;             // of each prompt
  std::vector<Request> requests;   // prompts.size() * num_choices, the choices of a prompt side by side
  std::vector<std::shared_ptr<PromptLogprobs>> prompt_logprobs;  // as many, or none
};

// The fields that both protocols have, into `plan` and into the request that all choices share.
struct SharedFields {
  Request request;
  int num_choices = 1;
  ReplyOptions reply;
};
// `default_max_tokens`: -1 for what the context holds.
SharedFields read_shared_fields(const Fields& fields, const ServedModel& model, int default_max_tokens);

// Requests for every choice of every prompt. Throws for a prompt that is empty or too long.
GenerationPlan make_plan(SharedFields shared, std::vector<Prompt> prompts, const ServedModel& model, const std::string& param);

// Throws for a field of this version's list of those not supported, where it asks for something.
void refuse_unsupported_fields(const Fields& fields);

}  // namespace couplet::server
