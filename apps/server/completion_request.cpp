#include "server/completion_request.h"

#include <fmt/format.h>

#include "server/api_error.h"

namespace couplet::server {
namespace {

constexpr int kDefaultMaxTokens = 16, kMaxLogprobs = 5;
constexpr std::size_t kMaxPrompts = 128;

Prompt read_prompt(const Json& value, const std::string& path, const Fields& fields, const ServedModel& model) {
  const Tokenizer& tokenizer = model.tokenizer();
  Prompt prompt;
  if (value.is_string()) {
    prompt.text = value.get<std::string>();
    if (prompt.text.empty()) refuse_value(path, "some text", value);
    prompt.ids = text_ids(tokenizer, prompt.text, {.bos = fields.boolean("add_special_tokens").value_or(true),
                                                   .special = fields.boolean("parse_special").value_or(true)});
  } else if (value.is_array()) {
    if (value.empty()) refuse_value(path, "at least one token id", value);
    prompt.ids = read_token_ids(value, path, model.vocab_size);
    prompt.text = detokenize(tokenizer, prompt.ids, true);
  } else {
    refuse_value(path, "a string or a list of token ids", value);
  }
  return prompt;
}

std::vector<Prompt> read_prompts(const Fields& fields, const ServedModel& model) {
  const Json* prompt = fields.find("prompt");
  if (prompt == nullptr) refuse_field("prompt", "a string, a list of token ids, or a list of these", "nothing");
  const bool is_one = prompt->is_string() || (prompt->is_array() && !prompt->empty() && prompt->front().is_number());
  if (is_one) return {read_prompt(*prompt, "prompt", fields, model)};
  if (!prompt->is_array() || prompt->empty()) refuse_value("prompt", "a string, a list of token ids, or a list of these", *prompt);
  if (prompt->size() > kMaxPrompts) refuse_value("prompt", fmt::format("at most {} prompts", kMaxPrompts), *prompt);
  std::vector<Prompt> prompts;
  for (const Json& one : *prompt) prompts.push_back(read_prompt(one, fmt::format("prompt[{}]", prompts.size()), fields, model));
  return prompts;
}

}  // namespace

std::vector<TokenId> text_ids(const Tokenizer& tokenizer, std::string_view text, TokenizeOptions options) {
  std::vector<TokenId> ids = tokenizer.tokenize(text, options);
  const bool twice = options.bos && options.special && tokenizer.adds_bos() && ids.size() > 1 && ids[0] == tokenizer.bos_id() &&
                     ids[1] == tokenizer.bos_id();
  if (twice) ids.erase(ids.begin());  // the text brought its own
  return ids;
}

GenerationPlan read_completion_request(const Json& body, const ServedModel& model) {
  const Fields fields(body);
  SharedFields shared = read_shared_fields(fields, model, kDefaultMaxTokens);
  const auto logprobs = fields.integer("logprobs", 0, kMaxLogprobs);
  shared.reply.logprobs = logprobs.has_value();
  shared.reply.num_alternatives = static_cast<int>(logprobs.value_or(0));
  shared.reply.echo = fields.boolean("echo").value_or(false);
  const auto best_of = fields.integer("best_of", 1, model.options.max_choices);
  if (best_of && *best_of != shared.num_choices)
    throw ApiError(fmt::format("best_of: choosing among more than n replies is not supported in this version; expected n, {}, got {}",
                               shared.num_choices, *best_of), "best_of", "unsupported_parameter");
  return make_plan(std::move(shared), read_prompts(fields, model), model, "prompt");
}

}  // namespace couplet::server
