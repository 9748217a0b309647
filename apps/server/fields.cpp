#include "server/fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "server/api_error.h"

namespace couplet::server {

void refuse_field(const std::string& path, std::string_view expected, std::string_view got) {
  throw ApiError(fmt::format("{}: expected {}, got {}", path.empty() ? "the body" : path, expected, got), path, "invalid_value");
}

void refuse_value(const std::string& path, std::string_view expected, const Json& got) {
  refuse_field(path, expected, shown(got));
}

Fields::Fields(const Json& value, std::string path) : object_(&value), path_(std::move(path)) {
  if (!value.is_object()) refuse_value(path_, "an object", value);
}

const Json* Fields::find(std::string_view key) const {
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

std::string Fields::path(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

std::optional<bool> Fields::boolean(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse_value(path(key), "true or false", *value);
  return value->get<bool>();
}

std::optional<double> Fields::number(std::string_view key, double least, double greatest) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !(value->get<double>() >= least && value->get<double>() <= greatest))
    refuse_value(path(key), fmt::format("a number from {} to {}", least, greatest), *value);
  return value->get<double>();
}

std::optional<std::int64_t> Fields::integer(std::string_view key, std::int64_t least, std::int64_t greatest) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::int64_t> number = whole_number(*value);
  if (!number || *number < least || *number > greatest)
    refuse_value(path(key), fmt::format("a whole number from {} to {}", least, greatest), *value);
  return number;
}

const std::string* Fields::text(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_string()) refuse_value(path(key), "a string", *value);
  return &value->get_ref<const std::string&>();
}

const Json* Fields::array(std::string_view key) const {
  const Json* value = find(key);
  if (value != nullptr && !value->is_array()) refuse_value(path(key), "a list", *value);
  return value;
}

std::optional<Fields> Fields::object(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  return Fields(*value, path(key));
}

std::optional<std::int64_t> whole_number(const Json& value) {
  constexpr double kGreatestExact = 0x1p53;  // beyond it a double may stand for a neighbour, as that of -2^63 - 1 does
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (std::trunc(number) != number || std::abs(number) > kGreatestExact) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<std::int64_t>();
}

TokenId read_token_id(const Json& value, const std::string& path, int vocab_size) {
  const std::optional<std::int64_t> id = whole_number(value);
  if (!id || *id < 0 || *id >= vocab_size) refuse_value(path, fmt::format("a token id from 0 to {}", vocab_size - 1), value);
  return static_cast<TokenId>(*id);
}

std::vector<TokenId> read_token_ids(const Json& array, const std::string& path, int vocab_size) {
  if (!array.is_array()) refuse_value(path, "a list of token ids", array);
  std::vector<TokenId> ids;
  ids.reserve(array.size());
  for (const Json& value : array) {
    const std::optional<std::int64_t> id = whole_number(value);
    const bool is_good = id && *id >= 0 && *id < vocab_size;  // the path is made only where it is needed
    ids.push_back(is_good ? static_cast<TokenId>(*id) : read_token_id(value, fmt::format("{}[{}]", path, ids.size()), vocab_size));
  }
  return ids;
}

}  // namespace couplet::server
