#pragma once
// Metadata that was made, not read in place: keys in GGUF's spelling with values of their own. What a folder's JSON files
// say becomes one of these, so that nobody behind CheckpointFile knows which kind of file it was.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace couplet::formats {

class KeyValues {
 public:
  // A view is of a file that lives as long.
  using Value = std::variant<std::uint64_t, float, bool, std::string, std::string_view, std::vector<std::int64_t>>;

  void set(std::string key, Value value) { values_.insert_or_assign(std::move(key), std::move(value)); }

  bool has(std::string_view key) const { return values_.contains(key); }

  // As CheckpointFile's.
  std::optional<std::uint64_t> get_uint(std::string_view key) const { return get<std::uint64_t>(key, "an integer"); }
  std::optional<double> get_float(std::string_view key) const { return get<float>(key, "a float"); }
  std::optional<bool> get_bool(std::string_view key) const { return get<bool>(key, "a bool"); }
  std::optional<std::string_view> get_string(std::string_view key) const;
  std::optional<std::vector<std::int64_t>> get_ints(std::string_view key) const;
  // There are no arrays of other things: such a key is absent, or of another kind.
  void refuse_array(std::string_view key) const;
  std::vector<std::string_view> keys() const;
  const std::map<std::string, Value, std::less<>>& all() const { return values_; }

 private:
  // Null: no such key. Throws if its value is no T.
  template <class T>
  const T* find(std::string_view key, const char* wanted) const {
    const auto entry = values_.find(key);
    if (entry == values_.end()) return nullptr;
    if (const T* value = std::get_if<T>(&entry->second)) return value;
    refuse(key, wanted, entry->second);
  }
  template <class T>
  std::optional<T> get(std::string_view key, const char* wanted) const {
    const T* value = find<T>(key, wanted);
    return value ? std::optional(*value) : std::nullopt;
  }
  [[noreturn]] static void refuse(std::string_view key, const char* wanted, const Value& value);

  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace couplet::formats
