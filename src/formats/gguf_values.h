#pragma once
// Numbers, strings and metadata values as bytes of a GGUF file.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "formats/gguf_metadata.h"

namespace couplet::formats {

// Little-endian numbers and GGUF strings, one after the other.
struct ByteWriter {
  std::vector<std::byte> bytes;

  ByteWriter& append(const void* data, std::size_t size) {
    const std::size_t end = bytes.size();
    bytes.resize(end + size);
    if (size > 0) std::memcpy(bytes.data() + end, data, size);
    return *this;
  }
  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  ByteWriter& put(T value) {
    return append(&value, sizeof(value));
  }
  ByteWriter& put_bytes(const std::vector<std::byte>& more) { return append(more.data(), more.size()); }
  ByteWriter& put_text(std::string_view text) { return append(text.data(), text.size()); }
  ByteWriter& put_string(std::string_view text) { return put(std::uint64_t{text.size()}).put_text(text); }
};

// GGUF's number for the kind of a value.
template <class T>
constexpr GgufValueType gguf_type_of() {
  using Type = GgufValueType;
  if constexpr (!std::is_arithmetic_v<T>) return Type::string;
  if constexpr (std::is_same_v<T, bool>) return Type::boolean;
  if constexpr (std::is_same_v<T, float>) return Type::f32;
  if constexpr (std::is_same_v<T, double>) return Type::f64;
  constexpr Type kUnsigned[] = {Type::u8, Type::u16, Type::u32, Type::u64};
  constexpr Type kSigned[] = {Type::i8, Type::i16, Type::i32, Type::i64};
  constexpr std::size_t kLog = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return std::is_signed_v<T> ? kSigned[kLog] : kUnsigned[kLog];
}

// A number, bool or string, and arrays of them, as they stand behind a key and its type.
template <class T>
  requires std::is_arithmetic_v<T>
ByteWriter gguf_bytes(T value) {
  return ByteWriter().put(value);
}
inline ByteWriter gguf_bytes(std::string_view value) { return ByteWriter().put_string(value); }
template <class T>
ByteWriter gguf_bytes(const std::vector<T>& values) {
  ByteWriter array;
  array.put(gguf_type_of<T>()).put(std::uint64_t{values.size()});
  for (const T& value : values) {
    if constexpr (std::is_arithmetic_v<T>) {
      array.put(value);
    } else {
      array.put_string(value);
    }
  }
  return array;
}

}  // namespace couplet::formats
