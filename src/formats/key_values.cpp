#include "formats/key_values.h"

#include <array>

#include "couplet/error.h"
#include "formats/printable.h"

namespace couplet::formats {

std::optional<std::string_view> KeyValues::get_string(std::string_view key) const {
  const auto entry = values_.find(key);
  if (entry != values_.end())
    if (const auto* view = std::get_if<std::string_view>(&entry->second)) return *view;
  const std::string* value = find<std::string>(key, "a string");
  return value ? std::optional<std::string_view>(*value) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> KeyValues::get_ints(std::string_view key) const {
  const auto* value = find<std::vector<std::int64_t>>(key, "an array of integers");
  return value ? std::optional(*value) : std::nullopt;
}

void KeyValues::refuse_array(std::string_view key) const {
  const auto entry = values_.find(key);
  if (entry != values_.end()) refuse(key, "an array", entry->second);
}

std::vector<std::string_view> KeyValues::keys() const {
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : values_) keys.push_back(key);
  return keys;
}

void KeyValues::refuse(std::string_view key, const char* wanted, const Value& value) {
  constexpr std::array<const char*, std::variant_size_v<Value>> kKinds = {"an integer", "a float", "a bool",
                                                                              "a string",   "a string", "an array"};
  throw Error(ErrorKind::format, "[folder] key " + in_quotes(key) + ": expected " + wanted + ", folder has " +
                                     kKinds.at(value.index()));
}

}  // namespace couplet::formats
