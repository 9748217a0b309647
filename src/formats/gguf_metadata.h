#pragma once
// The keys of a GGUF file and their values. Reading checks every value against the bytes of the file and
// keeps only where it lies, so a vocabulary of 262,144 strings costs nothing until someone asks for it.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "formats/gguf_reader.h"
#include "formats/name_index.h"

namespace couplet::formats {

// GGUF's numbers for the kinds of a value.
// clang-format off
enum class GgufValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
// clang-format on
inline constexpr std::uint32_t kNumGgufValueTypes = 13;

class GgufMetadata {
 public:
  struct Entry {
    std::string_view key;
    GgufValueType type;  // of the value; of an array's elements
    bool is_array;
    std::uint64_t count;               // of an array's elements; else 1
    std::span<const std::byte> bytes;  // the value or the elements, as in the file
  };

  GgufMetadata() = default;
  // Reads `num_keys` keys from the reader's place on.
  GgufMetadata(GgufReader& reader, std::uint64_t num_keys);

  // As CheckpointFile's.
  std::optional<std::uint64_t> get_uint(std::string_view key) const;
  std::optional<double> get_float(std::string_view key) const;
  std::optional<bool> get_bool(std::string_view key) const;
  std::optional<std::string_view> get_string(std::string_view key) const;
  std::optional<std::vector<std::string_view>> get_strings(std::string_view key) const;
  std::optional<std::vector<std::int64_t>> get_ints(std::string_view key) const;
  std::optional<std::vector<float>> get_floats(std::string_view key) const;
  std::vector<std::string_view> keys() const;
  std::span<const Entry> entries() const { return entries_; }

 private:
  static Entry read_entry(GgufReader& reader, std::uint64_t index);
  // Null: no such key. Throws if the entry is of another kind than `wanted` says.
  const Entry* find(std::string_view key, bool array, bool (*accepts)(GgufValueType),
                    const char* wanted) const;

  std::vector<Entry> entries_;
  NameIndex index_;
};

}  // namespace couplet::formats
