// The JSON lines of score, tokenize and template: any bytes give a value or an Error, and what is accepted
// holds no id outside the vocabulary.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/check.h"
#include "couplet/error.h"
#include "json_lines.h"

namespace {

constexpr int kVocabSize = 1000;

void check_ids(const std::vector<couplet::TokenId>& ids) {
  for (const couplet::TokenId id : ids) COUPLET_CHECK(id >= 0 && id < kVocabSize);
}

template <typename Parse>
void try_to(Parse parse) {
  try {
    parse();
  } catch (const couplet::Error& error) {
    const std::string_view message = error.what();
    COUPLET_CHECK(!message.empty() && message.find('\n') == std::string_view::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace couplet::cli;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  try_to([&] {
    const ScoreLine parsed = parse_score_line(line, kVocabSize);
    check_ids(parsed.ids);
    for (const auto& ids : parsed.want) check_ids(ids);
    COUPLET_CHECK(parsed.text.has_value() || !parsed.ids.empty());
  });
  try_to([&] { parse_text_line(line); });
  try_to([&] { check_ids(parse_ids_line(line, kVocabSize)); });
  try_to([&] {  // what is handed to the template is a conversation with the same messages, or has variables that forbid it
    const nlohmann::ordered_json conversation = parse_conversation_line(line);
    COUPLET_CHECK(parse_conversation_line(conversation.dump()).at("messages") == conversation.at("messages"));
  });
  return 0;
}
