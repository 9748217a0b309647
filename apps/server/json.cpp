#include "server/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>
#include <vector>

#include "server/api_error.h"

namespace couplet::server {
namespace {

// "byte 17 (line 2, column 4)"; `position` counts from 1.
std::string place(std::string_view body, std::size_t position) {
  const std::size_t offset = std::min(position > 0 ? position - 1 : 0, body.size());
  const std::string_view before = body.substr(0, offset);
  const std::size_t last_break = before.rfind('\n');
  const std::size_t column = offset - (last_break == std::string_view::npos ? 0 : last_break + 1) + 1;
  return fmt::format("byte {} (line {}, column {})", offset + 1, std::count(before.begin(), before.end(), '\n') + 1, column);
}

[[noreturn]] void refuse(std::string_view expected, std::string_view got) {
  throw ApiError(fmt::format("[json] the body: expected {}, got {}", expected, got), "", "invalid_json");
}

// Builds the value. Objects are appended to without a look at their other keys: a set finds those that come twice.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(std::string_view body) : body_(body) {}
  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr), true; }
  bool boolean(bool value) override { return add(value), true; }
  bool number_integer(number_integer_t value) override { return add(value), true; }
  bool number_unsigned(number_unsigned_t value) override { return add(value), true; }
  bool number_float(number_float_t value, const string_t&) override { return add(value), true; }
  bool string(string_t& value) override { return add(std::move(value)), true; }
  bool binary(binary_t&) override { return false; }  // JSON has none
  bool start_object(std::size_t) override { return open(Json::object()), keys_.emplace_back(), true; }
  bool start_array(std::size_t) override { return open(Json::array()), true; }
  bool end_object() override { return open_.pop_back(), keys_.pop_back(), true; }
  bool end_array() override { return open_.pop_back(), true; }

  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second)
      refuse("each key of an object once", fmt::format("{} twice", shown(name)));
    if (keys_.back().size() > kMaxJsonKeys) refuse(fmt::format("at most {} keys in an object", kMaxJsonKeys), "more");
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string_view why = error.what();
    const auto says = [&](const char* words) { return why.find(words) != std::string_view::npos; };
    const char* what = says("UTF-8")            ? "bytes that are no UTF-8"
                       : says("surrogate")      ? "half a surrogate pair"
                       : says("out_of_range")   ? "a number beyond the range of a double"
                       : says("end of input")   ? "its end too early"
                                                : "something else";
    refuse("JSON", fmt::format("{} at {}", what, place(body_, position)));
  }

 private:
  template <typename Value>
  Json& add(Value&& value) {
    if (++num_values_ > kMaxJsonValues) refuse(fmt::format("at most {} values", kMaxJsonValues), "more");
    if (open_.empty()) return root_ = Json(std::forward<Value>(value));
    Json& parent = *open_.back();
    if (parent.is_array()) return parent.get_ref<Json::array_t&>().emplace_back(std::forward<Value>(value));
    // The vector's own emplace_back, since the map's looks through all keys.
    using Members = Json::object_t::Container;
    static_cast<Members&>(parent.get_ref<Json::object_t&>()).emplace_back(std::move(key_), Json(std::forward<Value>(value)));
    return parent.get_ref<Json::object_t&>().back().second;
  }
  void open(Json container) {
    if (open_.size() >= kMaxJsonDepth) refuse(fmt::format("at most {} levels of nesting", kMaxJsonDepth), "more");
    open_.push_back(&add(std::move(container)));
  }

  std::string_view body_;
  Json root_;
  std::vector<Json*> open_;  // a parent does not grow while its child is open, so these stay where they are
  std::vector<std::unordered_set<std::string>> keys_;
  std::string key_;
  std::size_t num_values_ = 0;
};

}  // namespace

Json parse_json(std::string_view body) {
  Builder builder(body);
  Json::sax_parse(body.begin(), body.end(), &builder);
  return builder.take();
}

std::string dump(const Json& json) {
  const std::string plain = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string escaped;
  std::size_t done = 0;
  const auto escape = [&](std::size_t at, std::size_t length, const char* as) {
    escaped.append(plain, done, at - done).append(as);
    done = at + length;
  };
  for (std::size_t at = 0; (at = plain.find_first_of("\xc2\xe2", at)) != std::string::npos; ++at) {
    const std::string_view here = std::string_view(plain).substr(at);
    if (here.starts_with("\xc2\x85")) escape(at, 2, "\\u0085");
    if (here.starts_with("\xe2\x80\xa8")) escape(at, 3, "\\u2028");
    if (here.starts_with("\xe2\x80\xa9")) escape(at, 3, "\\u2029");
  }
  return done == 0 ? plain : escaped.append(plain, done);
}

std::string shown(const Json& value) {
  constexpr std::size_t kLongest = 40;
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (value.is_object()) return "an object";
  const bool cut = value.is_string() && value.get_ref<const std::string&>().size() > 4 * kLongest;
  std::string text = (cut ? Json(value.get_ref<const std::string&>().substr(0, 4 * kLongest)) : value)
                         .dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

double shortest(float value) {
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  double same = value;
  if (error == std::errc()) std::from_chars(text, end, same);
  return same == 0 ? 0 : same;
}

}  // namespace couplet::server
