// Fields that other servers have and this one does not: where they ask for nothing they pass, else they are refused, since an
// answer without them would be an answer to another question.

#include <fmt/format.h>

#include <array>

#include "server/api_error.h"
#include "server/generation_plan.h"

namespace couplet::server {
namespace {

struct Unsupported {
  std::string_view name;
  std::string_view neutral = "";  // JSON values that ask for nothing, beside null; separated by a space
};

constexpr std::array kUnsupported = {
    Unsupported{"tools", "[]"},
    Unsupported{"tool_choice", R"("none" "auto")"},
    Unsupported{"functions", "[]"},
    Unsupported{"function_call", R"("none" "auto")"},
    Unsupported{"response_format", R"({"type":"text"})"},
    Unsupported{"structured_outputs"},
    Unsupported{"guided_json"},
    Unsupported{"guided_regex"},
    Unsupported{"guided_choice"},
    Unsupported{"guided_grammar"},
    Unsupported{"json_schema"},
    Unsupported{"grammar", R"("")"},
    Unsupported{"modalities", R"(["text"] [])"},
    Unsupported{"audio"},
    Unsupported{"web_search_options"},
    Unsupported{"documents", "[]"},
    Unsupported{"chat_template", R"("")"},
    Unsupported{"suffix", R"("")"},
    Unsupported{"min_tokens", "0"},
    Unsupported{"logits_processors", "[]"},
    Unsupported{"allowed_token_ids"},
    Unsupported{"bad_words", "[]"},
    Unsupported{"prompt_logprobs"},
    Unsupported{"logprob_token_ids", "[]"},
    Unsupported{"thinking_token_budget"},
    Unsupported{"truncate_prompt_tokens"},
    Unsupported{"include_stop_str_in_output", "false"},
    Unsupported{"skip_special_tokens", "true"},
    Unsupported{"length_penalty", "1 1.0"},
    Unsupported{"use_beam_search", "false"},
    Unsupported{"n_probs", "0"},
    Unsupported{"samplers"},
    Unsupported{"typical_p", "1 1.0"},
    Unsupported{"mirostat", "0"},
    Unsupported{"dynatemp_range", "0 0.0"},
    Unsupported{"dry_multiplier", "0 0.0"},
    Unsupported{"xtc_probability", "0 0.0"},
    Unsupported{"top_n_sigma", "-1 -1.0"},
    Unsupported{"lora", "[]"},
};

bool is_neutral(const Json& value, std::string_view neutral) {
  const std::string text = dump(value);
  for (std::size_t begin = 0; begin < neutral.size();) {
    const std::size_t end = std::min(neutral.find(' ', begin), neutral.size());
    if (neutral.substr(begin, end - begin) == text) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

void refuse_unsupported_fields(const Fields& fields) {
  for (const Unsupported& unsupported : kUnsupported) {
    const Json* value = fields.find(unsupported.name);
    if (value == nullptr || is_neutral(*value, unsupported.neutral)) continue;
    const std::string name(unsupported.name);
    const bool can_be_neutral = !unsupported.neutral.empty();
    throw ApiError(fmt::format("{}: not supported in this version; expected {}, got {}", name,
                               can_be_neutral ? fmt::format("null or one of: {}", unsupported.neutral) : "null", shown(*value)),
                   name, "unsupported_parameter");
  }
}

}  // namespace couplet::server
