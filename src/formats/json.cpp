#include "formats/json.h"

#include <algorithm>

#include "couplet/error.h"
#include "formats/printable.h"

namespace couplet::formats {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

constexpr std::size_t kMostDepth = 64;

// 18 digits of a long integer stay.
std::string with_cut_integers(std::string_view text) {
  constexpr std::size_t kMostDigits = 18;
  std::string out;
  bool in_string = false;
  std::size_t digits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escapes = in_string && text[i] == '\\' && i + 1 < text.size();
    if (text[i] == '"') in_string = !in_string;
    digits = !in_string && text[i] >= '0' && text[i] <= '9' ? digits + 1 : 0;
    if (digits <= kMostDigits) out += text[i];
    if (escapes) out += text[++i];
  }
  return out;
}

std::string kind_of(element value) {
  switch (value.type()) {
    case element_type::ARRAY:
      return "an array";
    case element_type::OBJECT:
      return "an object";
    case element_type::STRING:
      return "the string " + in_quotes(value.get_string().value());
    case element_type::BOOL:
      return value.get_bool().value() ? "true" : "false";
    case element_type::NULL_VALUE:
      return "null";
    default:
      return "the number " + simdjson::minify(value);
  }
}

}  // namespace

JsonObject::JsonObject(simdjson::dom::object object, std::string where) : object_(object), where_(std::move(where)) {
  std::vector<std::string_view> names;
  for (const auto field : object_) names.push_back(field.key);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end()) refuse(*twice, "it once", "it several times");
}

void JsonObject::refuse(std::string_view key, const std::string& expected, const std::string& got) const {
  throw Error(ErrorKind::format, where_ + " " + in_quotes(key) + ": expected " + expected + ", file says " + got);
}

std::optional<element> JsonObject::find(std::string_view key) const {
  element value;
  if (object_.at_key(key).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
  return value;
}

bool JsonObject::is_array(std::string_view key) const {
  const auto value = find(key);
  return value && value->is_array();
}
bool JsonObject::is_string(std::string_view key) const {
  const auto value = find(key);
  return value && value->is_string();
}

template <class T>
T JsonObject::as(std::string_view key, element value, const char* wanted) const {
  T result;
  if (value.get(result) != simdjson::SUCCESS) refuse(key, wanted, kind_of(value));
  return result;
}

template <class T>
std::optional<T> JsonObject::get(std::string_view key, const char* wanted) const {
  const auto value = find(key);
  return value ? std::optional(as<T>(key, *value, wanted)) : std::nullopt;
}

template <class T>
std::optional<std::vector<T>> JsonObject::get_array(std::string_view key, const char* wanted) const {
  const auto array = get<simdjson::dom::array>(key, wanted);
  if (!array) return std::nullopt;
  std::vector<T> results;
  for (const element value : *array) {
    results.emplace_back();
    if (value.get(results.back()) != simdjson::SUCCESS) refuse(key, wanted, "one with " + kind_of(value));
  }
  return results;
}

std::optional<std::uint64_t> JsonObject::get_uint(std::string_view key) const {
  return get<std::uint64_t>(key, "a whole number of at least 0");
}
std::optional<double> JsonObject::get_float(std::string_view key) const { return get<double>(key, "a number"); }
std::optional<bool> JsonObject::get_bool(std::string_view key) const { return get<bool>(key, "true or false"); }
std::optional<std::string_view> JsonObject::get_string(std::string_view key) const {
  return get<std::string_view>(key, "a string");
}
std::optional<JsonObject> JsonObject::get_object(std::string_view key) const {
  const auto object = get<simdjson::dom::object>(key, "an object");
  return object ? std::optional(JsonObject(*object, where_ + " " + in_quotes(key))) : std::nullopt;
}
std::vector<std::pair<std::string_view, JsonObject>> JsonObject::all_objects() const {
  std::vector<std::pair<std::string_view, JsonObject>> all;
  for (const auto field : object_)
    all.emplace_back(field.key, JsonObject(as<simdjson::dom::object>(field.key, field.value, "an object"),
                                           where_ + " " + in_quotes(field.key)));
  return all;
}
std::vector<std::pair<std::string_view, std::string_view>> JsonObject::all_strings() const {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  for (const auto field : object_) all.emplace_back(field.key, as<std::string_view>(field.key, field.value, "a string"));
  return all;
}

std::optional<std::vector<JsonObject>> JsonObject::get_objects(std::string_view key) const {
  const auto list = get_array<simdjson::dom::object>(key, "an array of objects");
  if (!list) return std::nullopt;
  std::vector<JsonObject> objects;
  for (const auto& object : *list)
    objects.emplace_back(object, where_ + " " + in_quotes(key) + " " + std::to_string(objects.size()));
  return objects;
}
std::optional<simdjson::dom::array> JsonObject::get_list(std::string_view key) const {
  return get<simdjson::dom::array>(key, "an array");
}
std::optional<std::vector<std::string_view>> JsonObject::get_strings(std::string_view key) const {
  return get_array<std::string_view>(key, "an array of strings");
}
std::optional<std::vector<std::uint64_t>> JsonObject::get_uints(std::string_view key) const {
  return get_array<std::uint64_t>(key, "an array of whole numbers of at least 0");
}
std::optional<std::vector<double>> JsonObject::get_floats(std::string_view key) const {
  return get_array<double>(key, "an array of numbers");
}

JsonDocument::JsonDocument(std::span<const std::byte> text, const std::string& where, std::size_t most_bytes,
                           LongIntegers long_integers)
    : where_(where) {
  if (text.size() > most_bytes) {
    throw Error(ErrorKind::format, where + ": expected at most " + std::to_string(most_bytes) + " bytes of JSON, got " +
                                       std::to_string(text.size()));
  }
  auto failure = parser_.allocate(std::max<std::size_t>(text.size(), 1), kMostDepth);
  element root;
  if (failure == simdjson::SUCCESS) {
    const char* begin = text.empty() ? "" : reinterpret_cast<const char*>(text.data());
    failure = parser_.parse(begin, text.size()).get(root);
    if (failure == simdjson::NUMBER_ERROR && long_integers == LongIntegers::cut)
      failure = parser_.parse(with_cut_integers({begin, text.size()})).get(root);
  }
  if (failure != simdjson::SUCCESS) {
    throw Error(failure == simdjson::MEMALLOC ? ErrorKind::resource : ErrorKind::format,
                where + ": expected JSON, got a problem: " + simdjson::error_message(failure));
  }
  if (root.get(root_) != simdjson::SUCCESS) {
    throw Error(ErrorKind::format, where + ": expected a JSON object, got " + kind_of(root));
  }
}

}  // namespace couplet::formats
