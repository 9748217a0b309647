#pragma once
// JSON files that come with a model, read with bounds on size and depth. An object hands out values by key; a missing
// key and null are the same, a value of another kind is an error that names the file, the key and both kinds. No object
// has a key twice.

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace couplet::formats {

class JsonObject {
 public:
  // `where` is "[part] file" for errors.
  JsonObject(simdjson::dom::object object, std::string where);

  std::optional<std::uint64_t> get_uint(std::string_view key) const;
  std::optional<double> get_float(std::string_view key) const;  // also a whole number
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string_view> get_string(std::string_view key) const;
  std::optional<JsonObject> get_object(std::string_view key) const;
  std::optional<std::vector<JsonObject>> get_objects(std::string_view key) const;
  std::optional<simdjson::dom::array> get_list(std::string_view key) const;  // of anything
  std::optional<std::vector<std::string_view>> get_strings(std::string_view key) const;
  std::optional<std::vector<std::uint64_t>> get_uints(std::string_view key) const;
  std::optional<std::vector<double>> get_floats(std::string_view key) const;
  bool has(std::string_view key) const { return find(key).has_value(); }
  bool is_array(std::string_view key) const;
  bool is_string(std::string_view key) const;

  // Every key with its value, in the file's order; all values are of that kind.
  std::vector<std::pair<std::string_view, JsonObject>> all_objects() const;
  std::vector<std::pair<std::string_view, std::string_view>> all_strings() const;
  const std::string& where() const { return where_; }
  simdjson::dom::object object() const { return object_; }
  [[noreturn]] void refuse(std::string_view key, const std::string& expected, const std::string& got) const;

 private:
  template <class T>
  T as(std::string_view key, simdjson::dom::element value, const char* wanted) const;
  std::optional<simdjson::dom::element> find(std::string_view key) const;
  template <class T>
  std::optional<T> get(std::string_view key, const char* wanted) const;
  template <class T>
  std::optional<std::vector<T>> get_array(std::string_view key, const char* wanted) const;

  simdjson::dom::object object_;
  std::string where_;
};

// What becomes of an integer that 64 bits don't hold: an error, or, where its size means nothing ("no limit" has 31
// digits), its first digits.
enum class LongIntegers : bool { refused, cut };

// A parsed text, which owns what its objects hand out; it copies the text.
class JsonDocument {
 public:
  // Throws Error{format} unless the text is one JSON object of at most `most_bytes`.
  JsonDocument(std::span<const std::byte> text, const std::string& where, std::size_t most_bytes,
               LongIntegers long_integers = LongIntegers::refused);
  JsonObject root() const { return JsonObject(root_, where_); }
  JsonObject root(std::string where) const { return JsonObject(root_, std::move(where)); }

 private:
  std::string where_;
  simdjson::dom::parser parser_;
  simdjson::dom::object root_;
};

}  // namespace couplet::formats
