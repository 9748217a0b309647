#include "story/token_json.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

namespace couplet::story {
namespace {

using Json = nlohmann::ordered_json;

void flatten_negative_zeros(Json& value) {
  if (value.is_number_float() && value == 0.0) value = 0.0;
  if (value.is_structured())
    for (Json& inner : value) flatten_negative_zeros(inner);
}

}  // namespace

std::string token_text(const Tokenizer& tokenizer, TokenId id) {
  return id >= 0 && id < tokenizer.vocab_size() ? tokenizer.bytes(id, true) : "";
}

bool is_end(const Tokenizer& tokenizer, TokenId id) {
  const std::span<const TokenId> ends = tokenizer.end_ids();
  return std::find(ends.begin(), ends.end(), id) != ends.end();
}

Json to_json(const Tokenizer& tokenizer, const TokenChoice& choice) {
  const std::string text = token_text(tokenizer, choice.id);
  Json token = {
      {"id", choice.id}, {"text", text}, {"bytes", std::vector<std::uint8_t>(text.begin(), text.end())}};
  if (!choice.measured) return token;
  token["logprob"] = shortest(choice.log_probability);
  token["top"] = Json::array();
  for (const Alternative& other : choice.alternatives)
    token["top"].push_back(
        {{"id", other.id}, {"text", token_text(tokenizer, other.id)}, {"logprob", shortest(other.log_probability)}});
  return token;
}

double shortest(float value) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  double same = value;
  if (error == std::errc()) std::from_chars(text, end, same);
  return same;
}

std::string dump(Json value) {
  flatten_negative_zeros(value);
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace couplet::story
