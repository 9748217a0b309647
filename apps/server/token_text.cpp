#include "server/token_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace couplet::server {

Json chat_token(const Tokenizer& tokenizer, TokenId id, float log_probability) {
  const std::string bytes = tokenizer.bytes(id);
  const bool adds_none = bytes.empty() && !tokenizer.bytes(id, true).empty();
  return {{"token", detokenize(tokenizer, std::span(&id, 1), true)},
          {"logprob", shortest(log_probability)},
          {"bytes", adds_none ? Json(nullptr) : Json(std::vector<std::uint8_t>(bytes.begin(), bytes.end()))}};
}

Json chat_token(const Tokenizer& tokenizer, const TokenChoice& choice, int num_alternatives) {
  Json token = chat_token(tokenizer, choice.id, choice.log_probability);
  Json& top = token["top_logprobs"] = Json::array();
  const std::size_t count = std::min(choice.alternatives.size(), static_cast<std::size_t>(num_alternatives));
  for (std::size_t i = 0; i < count; ++i)
    top.push_back(chat_token(tokenizer, choice.alternatives[i].id, choice.alternatives[i].log_probability));
  return token;
}

std::string completion_token(const Tokenizer& tokenizer, TokenId id) {
  const std::string bytes = tokenizer.bytes(id, true);
  const std::string text = detokenize(tokenizer, std::span(&id, 1), true);
  if (text == bytes) return text;
  std::string spelt = "bytes:";
  for (const char byte : bytes) spelt += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return spelt;
}

std::size_t TextOffsets::next(TokenId id) {
  const std::size_t begin = num_characters_;
  text_.clear();
  detokenizer_.push(id, text_);
  num_characters_ += num_characters(text_);
  return begin;
}

std::size_t TextOffsets::finish() {
  text_.clear();
  detokenizer_.finish(text_);
  return num_characters_ += num_characters(text_);
}

std::size_t num_characters(std::string_view text) {
  const auto begins = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins));
}

}  // namespace couplet::server
