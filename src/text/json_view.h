#pragma once
// Reading JSON that may be hostile: bounded in size and depth, and every question says in its error what it asked for.

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>

#include "couplet/error.h"

namespace couplet::text {

class JsonView {
 public:
  JsonView(simdjson::dom::element element, std::string path) : element_(element), path_(std::move(path)) {}

  [[noreturn]] void refuse(const std::string& expected, const std::string& got) const {
    throw Error(ErrorKind::format, "[tokenizer] " + path_ + ": expected " + expected + ", got " + got);
  }
  [[noreturn]] void refuse_unknown(const std::string& expected, const std::string& got) const {
    throw Error(ErrorKind::unsupported, "[tokenizer] " + path_ + ": expected " + expected + ", got " + got);
  }

  // Nothing where there is no such key, or null.
  std::optional<JsonView> get(const char* key) const {
    simdjson::dom::element value;
    simdjson::dom::object object;
    if (element_.get(object) != simdjson::SUCCESS || object.at_key(key).get(value) != simdjson::SUCCESS ||
        value.is_null())
      return std::nullopt;
    return JsonView(value, path_ + "." + key);
  }
  JsonView at(const char* key) const {
    if (const auto value = get(key)) return *value;
    refuse("a key \"" + std::string(key) + "\"", "none");
  }

  bool is_string() const { return element_.is_string(); }
  bool is_array() const { return element_.is_array(); }
  bool is_object() const { return element_.is_object(); }

  std::string_view string() const { return as<std::string_view>("a string"); }
  bool boolean() const { return as<bool>("true or false"); }
  double number() const { return as<double>("a number"); }
  std::uint64_t index() const { return as<std::uint64_t>("a number of at least 0"); }
  simdjson::dom::array array() const { return as<simdjson::dom::array>("a list"); }
  simdjson::dom::object object() const { return as<simdjson::dom::object>("an object"); }

  bool boolean(const char* key, bool otherwise) const {
    const auto value = get(key);
    return value ? value->boolean() : otherwise;
  }
  std::string_view string(const char* key, std::string_view otherwise) const {
    const auto value = get(key);
    return value ? value->string() : otherwise;
  }

  template <typename Visit>
  void for_each(const Visit& visit) const {
    std::size_t i = 0;
    for (const simdjson::dom::element element : array())
      visit(JsonView(element, path_ + "[" + std::to_string(i++) + "]"));
  }

 private:
  template <typename Value>
  Value as(const char* expected) const {
    Value value{};
    if (element_.get(value) != simdjson::SUCCESS) refuse(expected, "something else");
    return value;
  }

  simdjson::dom::element element_;
  std::string path_;
};

}  // namespace couplet::text
