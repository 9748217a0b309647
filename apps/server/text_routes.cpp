#include "server/text_routes.h"

#include <fmt/format.h>

#include "server/api_error.h"
#include "server/chat_request.h"
#include "server/completion_request.h"
#include "server/fields.h"
#include "server/generation_plan.h"
#include "server/token_text.h"

namespace couplet::server {
namespace {

// Where a text may stand: llama.cpp's name, whose default leaves BOS out, and vLLM's, whose default puts it in.
std::vector<TokenId> given_text_ids(const Fields& fields, const ServedModel& model) {
  const std::string* content = fields.text("content");
  const std::string* prompt = fields.text("prompt");
  if ((content == nullptr) == (prompt == nullptr))
    refuse_field("prompt", "one of prompt, content and messages", content == nullptr ? "none" : "more");
  const auto llama = fields.boolean("add_special");
  const auto vllm = fields.boolean("add_special_tokens");
  const bool bos = vllm ? *vllm : llama.value_or(prompt != nullptr);
  const std::string& text = prompt != nullptr ? *prompt : *content;
  return text_ids(model.tokenizer(), text, {.bos = bos, .special = fields.boolean("parse_special").value_or(true)});
}

Json piece_of(const Tokenizer& tokenizer, TokenId id) {
  const std::string bytes = tokenizer.bytes(id, true);
  const std::string text = couplet::detokenize(tokenizer, std::span(&id, 1), true);
  return text == bytes ? Json(text) : Json(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
}

void check_model(const Fields& fields, const ServedModel& model) {
  if (const std::string* name = fields.text("model")) model.require(*name, "model");
}

}  // namespace

Json tokenize(const Json& body, const ServedModel& model) {
  const Fields fields(body);
  check_model(fields, model);
  refuse_unsupported_fields(fields);
  std::vector<TokenId> ids;
  if (fields.find("messages") == nullptr) {
    ids = given_text_ids(fields, model);
  } else if (fields.find("content") == nullptr && fields.find("prompt") == nullptr) {
    ids = conversation_ids(read_conversation(fields, model), model);
  } else {
    refuse_field("messages", "one of prompt, content and messages", "more");
  }
  const Tokenizer& tokenizer = model.tokenizer();
  Json reply = {{"tokens", Json::array()}, {"count", ids.size()}, {"max_model_len", model.info.context}};
  const bool with_pieces = fields.boolean("with_pieces").value_or(false);
  for (const TokenId id : ids)
    reply["tokens"].push_back(with_pieces ? Json{{"id", id}, {"piece", piece_of(tokenizer, id)}} : Json(id));
  if (fields.boolean("return_token_strs").value_or(false))
    for (Json& texts = reply["token_strs"] = Json::array(); const TokenId id : ids)
      texts.push_back(couplet::detokenize(tokenizer, std::span(&id, 1), true));
  return reply;
}

Json detokenize(const Json& body, const ServedModel& model) {
  const Fields fields(body);
  check_model(fields, model);
  const Json* tokens = fields.array("tokens");
  if (tokens == nullptr) refuse_field("tokens", "a list of token ids", "nothing");
  const std::string text = couplet::detokenize(model.tokenizer(), read_token_ids(*tokens, "tokens", model.vocab_size), true);
  return {{"content", text}, {"prompt", text}};
}

Json apply_template(const Json& body, const ServedModel& model) {
  const Fields fields(body);
  check_model(fields, model);
  refuse_unsupported_fields(fields);
  return {{"prompt", conversation_text(read_conversation(fields, model), model)}};
}

}  // namespace couplet::server
