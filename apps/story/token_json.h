#pragma once
// Tokens and their probabilities in JSON, as every command and the server write them.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "couplet/stats.h"
#include "couplet/tokenizer.h"

namespace couplet::story {

// What a token adds to a text, a control token's spelling included; "" for an id beyond the tokenizer's vocabulary.
std::string token_text(const Tokenizer& tokenizer, TokenId id);
bool is_end(const Tokenizer& tokenizer, TokenId id);
// One token's probabilities: {"id", "text", "bytes", "logprob", "top": [{"id", "text", "logprob"}]}.
nlohmann::ordered_json to_json(const Tokenizer& tokenizer, const TokenChoice& choice);
// The number with the fewest digits that is read back as this float: 0.8, not 0.800000011920929.
double shortest(float value);
// On one line without a newline; bytes that are no UTF-8 become U+FFFD, and -0 becomes 0.
std::string dump(nlohmann::ordered_json value);

}  // namespace couplet::story
