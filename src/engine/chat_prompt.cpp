#include "engine/chat_prompt.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "couplet/chat_prompt.h"
#include "couplet/error.h"

namespace couplet {
namespace engine {
namespace {

using Json = nlohmann::ordered_json;

// Bytes of the character that begins at text[0]; the text is valid UTF-8 (JSON strings and rendered text
// are).
std::size_t character_length(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) ++length;
  return length;
}

void mark_strings(Json& value, const ControlSpellings& spellings, std::string_view mark) {
  if (value.is_string()) {
    value = mark_controls(value.get_ref<const std::string&>(), spellings, mark);
  } else if (value.is_array()) {
    for (Json& item : value) mark_strings(item, spellings, mark);
  } else if (value.is_object()) {
    Json marked = Json::object();
    for (auto& [key, item] : value.items()) {
      mark_strings(item, spellings, mark);
      marked[mark_controls(key, spellings, mark)] = std::move(item);
    }
    value = std::move(marked);
  }
}

// A private-use character that neither the conversation nor the template has.
std::string unused_mark(std::string_view conversation, std::string_view template_source) {
  for (unsigned code = 0xE000; code < 0xF900; ++code) {
    const std::string mark = {static_cast<char>(0xE0 | (code >> 12)),
                              static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
                              static_cast<char>(0x80 | (code & 0x3F))};
    if (conversation.find(mark) == std::string_view::npos &&
        template_source.find(mark) == std::string_view::npos)
      return mark;
  }
  throw Error(ErrorKind::template_failed,
              "[chat] conversation: expected an unused private-use character, got all of them");
}

Json parse(std::string_view conversation) {
  constexpr int kMaxDepth = 100;
  const auto check_depth = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) throw Error(ErrorKind::template_failed, "[chat] conversation: nested too deeply");
    return true;
  };
  try {
    return Json::parse(conversation.begin(), conversation.end(), check_depth);
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorKind::template_failed, "[chat] conversation: expected JSON, got something else");
  }
}

}  // namespace

ControlSpellings::ControlSpellings(const Tokenizer& tokenizer) {
  std::set<std::size_t> lengths;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    const TokenKind kind = tokenizer.kind(id);
    if (kind != TokenKind::control && kind != TokenKind::unknown) continue;
    const std::string text = tokenizer.bytes(id, true);
    if (text.empty()) continue;
    ids_.emplace(text, id);
    lengths.insert(text.size());
    first_bytes_[static_cast<unsigned char>(text[0])] = true;
  }
  lengths_.assign(lengths.rbegin(), lengths.rend());
}

ControlSpellings::Match ControlSpellings::longest_at(std::string_view text, std::size_t begin) const {
  if (!first_bytes_[static_cast<unsigned char>(text[begin])]) return {};
  for (const std::size_t length : lengths_) {
    if (length > text.size() - begin) continue;
    const auto found = ids_.find(std::string(text.substr(begin, length)));
    if (found != ids_.end()) return {length, found->second};
  }
  return {};
}

std::string mark_controls(std::string_view text, const ControlSpellings& spellings, std::string_view mark) {
  std::string marked;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_length(text.substr(i));
    marked += text.substr(i, length);
    if (spellings.longest_at(text, i).length > 0) marked += mark;
    i += length;
  }
  return marked;
}

std::vector<TokenId> tokenize_marked(const Tokenizer& tokenizer, const ControlSpellings& spellings,
                                     std::string_view text, std::string_view mark) {
  std::vector<TokenId> ids;
  std::string plain;
  const auto take_plain = [&] {
    const std::vector<TokenId> part = tokenizer.tokenize(plain);
    ids.insert(ids.end(), part.begin(), part.end());
    plain.clear();
  };
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i).starts_with(mark)) {
      i += mark.size();
      continue;
    }
    const ControlSpellings::Match control = spellings.longest_at(text, i);
    // A spelling of one character has its mark behind it.
    if (control.length > 0 && !text.substr(i + control.length).starts_with(mark)) {
      take_plain();
      ids.push_back(control.id);
      i += control.length;
    } else {
      plain += text[i++];
    }
  }
  take_plain();
  return ids;
}

}  // namespace engine

std::vector<TokenId> chat_prompt(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                 std::string_view conversation) {
  const engine::ControlSpellings spellings(tokenizer);
  engine::Json marked = engine::parse(conversation);
  const engine::Json plain = marked;
  const std::string mark = engine::unused_mark(
      plain.dump(), chat_template.source() + chat_template.tool_use_source());
  engine::mark_strings(marked, spellings, mark);
  std::vector<TokenId> ids;
  if (marked == plain) {  // nothing in it spells a control token
    ids = tokenizer.tokenize(chat_template.render(conversation), {.special = true});
  } else {
    ids = engine::tokenize_marked(tokenizer, spellings, chat_template.render(marked.dump()), mark);
  }
  if (tokenizer.adds_bos() && tokenizer.bos_id() >= 0 && (ids.empty() || ids.front() != tokenizer.bos_id()))
    ids.insert(ids.begin(), tokenizer.bos_id());
  return ids;
}

std::vector<TokenId> chat_prompt(const Checkpoint& checkpoint, std::string_view conversation) {
  if (checkpoint.chat_template() == nullptr)
    throw Error(ErrorKind::template_failed,
                "[chat] the checkpoint has no chat template: it can only complete raw text");
  return chat_prompt(checkpoint.tokenizer(), *checkpoint.chat_template(), conversation);
}

}  // namespace couplet
