#pragma once
// A cursor over the bytes of a GGUF file that can't leave them: every read is checked against what is left,
// and every failure names the key or tensor being read.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "couplet/error.h"

namespace couplet::formats {

static_assert(std::endian::native == std::endian::little && sizeof(std::size_t) == 8,
              "GGUF numbers are read as they stand: little-endian, 64 bits");

class GgufReader {
 public:
  explicit GgufReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // What the next reads belong to, for the messages: `key "llama.block_count"`.
  void enter(std::string what) { what_ = std::move(what); }

  std::size_t position() const { return position_; }
  std::size_t left() const { return bytes_.size() - position_; }

  template <class T>
  T read() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  // The next `count` bytes; a count of up to 2^64 - 1 is just an error.
  std::span<const std::byte> take(std::uint64_t count) {
    if (count > left()) {
      fail(ErrorKind::format, "expected " + std::to_string(count) + " more bytes, the file has " +
                                  std::to_string(left()) + " left");
    }
    const auto taken = bytes_.subspan(position_, count);
    position_ += count;
    return taken;
  }

  // A string: its length in 8 bytes, then its bytes.
  std::string_view read_string() {
    const auto text = take(read<std::uint64_t>());
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  // Throws "[gguf] <what is being read>: <problem>".
  [[noreturn]] void fail(ErrorKind kind, const std::string& problem) const {
    throw Error(kind, "[gguf] " + what_ + ": " + problem);
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
  std::string what_ = "file";
};

}  // namespace couplet::formats
