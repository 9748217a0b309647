#include "server/openapi.h"

#include <limits>

extern "C" const char couplet_openapi[], couplet_openapi_end[];

namespace couplet::server {
namespace {

// Strings "{vocab}" and such stand for numbers that are known only now.
void fill_in(Json& json, const ServedModel& model) {
  if (json.is_structured()) {
    for (Json& inner : json) fill_in(inner, model);
    return;
  }
  if (!json.is_string()) return;
  const auto& text = json.get_ref<const std::string&>();
  if (text == "{last_token_id}") json = model.vocab_size - 1;
  else if (text == "{max_choices}") json = model.options.max_choices;
  else if (text == "{max_output_tokens}") json = model.options.max_output_tokens > 0 ? model.max_output_tokens : std::numeric_limits<int>::max();
  else if (text == "{model}") json = model.name;
  else if (text == "{version}") json = COUPLET_VERSION;
}

}  // namespace

std::string openapi_json(const ServedModel& model) {
  Json json = Json::parse(couplet_openapi, couplet_openapi_end);
  fill_in(json, model);
  return dump(json);
}

}  // namespace couplet::server
