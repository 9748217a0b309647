#include "json_lines.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "terminal.h"

namespace couplet::cli {
namespace {

using Json = nlohmann::ordered_json;  // a template may print a tool's keys, in their order

constexpr int kMaxDepth = 64;

[[noreturn]] void refuse(const std::string& what, const std::string& expected, const std::string& got) {
  throw Error(ErrorKind::format, fmt::format("{}: expected {}, got {}", what, expected, got));
}

// A value in short, clean to print.
std::string shown(const Json& value) {
  constexpr std::size_t kLongest = 40;
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (value.is_object()) return "an object";
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

Json parse_json(std::string_view line) {
  const auto check_depth = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) refuse("the line", fmt::format("at most {} levels of nesting", kMaxDepth), "more");
    return true;
  };
  Json value;
  try {
    value = Json::parse(line.begin(), line.end(), check_depth);
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(ErrorKind::format,
                fmt::format("expected a JSON object, got no valid JSON at byte {}", error.byte));
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorKind::format, "expected a JSON object, got a number beyond every range");
  }
  return value;
}

void check_object(const Json& value) {
  if (!value.is_object()) throw Error(ErrorKind::format, "expected a JSON object, got " + shown(value));
}

Json parse_object(std::string_view line) {
  Json object = parse_json(line);
  check_object(object);
  return object;
}

std::vector<TokenId> read_ids(const Json& value, const std::string& what, int vocab_size) {
  if (!value.is_array()) refuse(what, "a list of token ids", shown(value));
  std::vector<TokenId> ids;
  ids.reserve(value.size());
  for (const Json& id : value) {
    const bool inside =
        id.is_number_unsigned() && id.get<std::uint64_t>() < static_cast<std::uint64_t>(vocab_size);
    if (!inside)
      refuse(fmt::format("{}[{}]", what, ids.size()), fmt::format("a token id from 0 to {}", vocab_size - 1),
             shown(id));
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

std::string read_text(const Json& object) {
  const auto text = object.find("text");
  if (text == object.end()) throw Error(ErrorKind::format, "expected the key \"text\", got none");
  if (!text->is_string()) refuse("text", "a string", shown(*text));
  return text->get<std::string>();
}

std::vector<TokenId> read_ids(const Json& object, int vocab_size) {
  const auto ids = object.find("ids");
  if (ids == object.end()) throw Error(ErrorKind::format, "expected the key \"ids\", got none");
  return read_ids(*ids, "ids", vocab_size);
}

// A list of objects under `key`; null is none.
void take_objects(const Json& from, const char* key, const char* what, Json& to) {
  const auto found = from.find(key);
  if (found == from.end() || found->is_null()) return;
  if (!found->is_array()) refuse(key, fmt::format("a list of {}", what), shown(*found));
  for (std::size_t i = 0; i < found->size(); ++i) {
    if (!(*found)[i].is_object()) refuse(fmt::format("{}[{}]", key, i), "an object", shown((*found)[i]));
  }
  to[key] = *found;
}

// The keys that a template knows, checked.
Json conversation_of(const Json& object) {
  check_object(object);
  Json conversation = Json::object();
  take_objects(object, "messages", "messages", conversation);
  if (!conversation.contains("messages")) throw Error(ErrorKind::format, "expected the key \"messages\", got none");
  take_objects(object, "tools", "tools", conversation);
  take_objects(object, "documents", "documents", conversation);
  const auto prompt = object.find("add_generation_prompt");
  if (prompt != object.end()) {
    if (!prompt->is_boolean()) refuse("add_generation_prompt", "true or false", shown(*prompt));
    conversation["add_generation_prompt"] = *prompt;
  }
  const auto continued = object.find("continue_final_message");
  if (continued != object.end()) {
    if (!continued->is_boolean() && !continued->is_string())
      refuse("continue_final_message", "true, false or the name of a field", shown(*continued));
    conversation["continue_final_message"] = *continued;
  }
  const auto variables = object.find("chat_template_kwargs");
  if (variables == object.end() || variables->is_null()) return conversation;
  if (!variables->is_object()) refuse("chat_template_kwargs", "an object", shown(*variables));
  for (const auto& [name, value] : variables->items()) {
    if (conversation.contains(name) || object.contains(name))
      refuse("chat_template_kwargs", "variables of the template", name + ", which the conversation has");
    conversation[name] = value;
  }
  return conversation;
}

}  // namespace

ScoreLine parse_score_line(std::string_view line, int vocab_size) {
  const Json object = parse_object(line);
  ScoreLine parsed;
  if (object.contains("ids") == object.contains("text"))
    throw Error(ErrorKind::format, fmt::format("expected one of the keys \"ids\" and \"text\", got {}",
                                               object.contains("ids") ? "both" : "none"));
  if (object.contains("text")) {
    parsed.text = read_text(object);
  } else {
    parsed.ids = read_ids(object, vocab_size);
    if (parsed.ids.empty()) refuse("ids", "at least one token id", "none");
  }
  const auto want = object.find("want");
  if (want == object.end() || want->is_null()) return parsed;
  if (!want->is_array()) refuse("want", "a list of lists of token ids", shown(*want));
  parsed.has_want = true;
  for (const Json& ids : *want)
    parsed.want.push_back(read_ids(ids, fmt::format("want[{}]", parsed.want.size()), vocab_size));
  return parsed;
}

std::string parse_text_line(std::string_view line) { return read_text(parse_object(line)); }

std::vector<TokenId> parse_ids_line(std::string_view line, int vocab_size) {
  return read_ids(parse_object(line), vocab_size);
}

std::string json_or_text(std::string_view text) {
  try {
    return parse_json(text).dump();
  } catch (const Error&) {
    return Json(text).dump();
  }
}

Json parse_conversation_line(std::string_view line) {
  const Json value = parse_json(line);
  try {
    return conversation_of(value);
  } catch (const Error& error) {
    throw Error(ErrorKind::template_failed, error.what());
  }
}

LineReader::LineReader(const std::string& path)
    : path_(path == "-" ? "standard input" : path), file_(STDIN_FILENO) {
  if (path == "-") return;
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0)
    throw Error(errno == ENOENT ? ErrorKind::not_found : ErrorKind::io,
                fmt::format("[input] {}: {}", path_, std::strerror(errno)));
}

LineReader::~LineReader() {
  if (file_ != STDIN_FILENO) ::close(file_);
}

bool LineReader::fill() {
  constexpr std::size_t kChunk = std::size_t{1} << 16;
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t size = buffer_.size();
  buffer_.resize(size + kChunk);
  ssize_t count = ::read(file_, buffer_.data() + size, kChunk);
  while (count < 0 && (errno == EINTR || errno == EAGAIN)) {
    if (errno == EAGAIN) wait_until_ready(file_, POLLIN);
    count = ::read(file_, buffer_.data() + size, kChunk);
  }
  if (count < 0) throw Error(ErrorKind::io, fmt::format("[input] {}: {}", path_, std::strerror(errno)));
  buffer_.resize(size + static_cast<std::size_t>(count));
  ended_ = count == 0;
  return !ended_;
}

bool LineReader::next(std::string& line) {
  for (;;) {
    std::size_t searched = 0, end = 0;
    while ((end = buffer_.find('\n', begin_ + searched)) == std::string::npos) {
      searched = buffer_.size() - begin_;
      if (searched > kMaxLineBytes)
        throw Error(ErrorKind::format, fmt::format("[input] {}: line {}: expected at most {} bytes, got more",
                                                   path_, number_ + 1, kMaxLineBytes));
      if (ended_ || !fill()) break;
    }
    if (end == std::string::npos) {
      if (begin_ == buffer_.size()) return false;
      end = buffer_.size();
    }
    line.assign(buffer_, begin_, end - begin_);
    begin_ = std::min(end + 1, buffer_.size());
    ++number_;
    if (line.find_first_not_of(" \t\r") != std::string::npos) return true;
  }
}

void rethrow_at_line(std::string_view command, int number, const Error& error) {
  throw Error(error.kind(), fmt::format("[{}] line {}: {}", command, number, error.what()));
}

}  // namespace couplet::cli
