#pragma once
// The fields of a JSON object, each read with its type and range checked. A field that is absent or null was not given. What
// does not fit throws ApiError with the field's whole path as `param`.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "couplet/tokenizer.h"
#include "server/json.h"

namespace couplet::server {

// Says that `path` was expected to be something else.
[[noreturn]] void refuse_field(const std::string& path, std::string_view expected, std::string_view got);
[[noreturn]] void refuse_value(const std::string& path, std::string_view expected, const Json& got);

class Fields {
 public:
  // `path` is the object's own; "" for the body. Throws where `value` is no object.
  explicit Fields(const Json& value, std::string path = "");

  const Json* find(std::string_view key) const;  // null: not given
  std::string path(std::string_view key) const;

  std::optional<bool> boolean(std::string_view key) const;
  std::optional<double> number(std::string_view key, double least, double greatest) const;
  std::optional<std::int64_t> integer(std::string_view key, std::int64_t least, std::int64_t greatest) const;
  const std::string* text(std::string_view key) const;  // null: not given
  const Json* array(std::string_view key) const;
  std::optional<Fields> object(std::string_view key) const;
  const Json& json() const { return *object_; }

 private:
  const Json* object_;
  std::string path_;
};

// A whole number, written as 3 or as 3.0; nothing where it is none or does not fit.
std::optional<std::int64_t> whole_number(const Json& value);
// An id from 0 to vocab_size - 1.
TokenId read_token_id(const Json& value, const std::string& path, int vocab_size);
std::vector<TokenId> read_token_ids(const Json& array, const std::string& path, int vocab_size);

}  // namespace couplet::server
