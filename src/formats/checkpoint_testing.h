#pragma once
// For tests and fuzzers: reads everything that a checkpoint hands out, so that a sanitizer sees every bad
// pointer.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "couplet/error.h"
#include "formats/checkpoint_file.h"

namespace couplet::formats {

// A sum over all keys with their values, and over every tensor's name, shape, first and last byte. Getters
// that refuse a key (it is of another kind) add nothing.
inline std::uint64_t touch_everything(const CheckpointFile& file) {
  std::uint64_t sum = file.file_bytes() + file.format().size();
  const auto add_text = [&](std::string_view text) {
    for (const char c : text) sum += static_cast<unsigned char>(c);
  };
  const auto attempt = [](auto read) {
    try {
      read();
    } catch (const Error&) {
    }
  };
  for (const std::string_view key : file.keys()) {
    add_text(key);
    attempt([&] { sum += file.get_uint(key).value(); });
    attempt([&] { sum += file.get_float(key).value() > 0; });
    attempt([&] { sum += file.get_bool(key).value(); });
    attempt([&] { add_text(file.get_string(key).value()); });
    attempt([&] {
      const auto texts = file.get_strings(key).value();
      for (const auto text : texts) add_text(text);
    });
    attempt([&] {
      const auto numbers = file.get_ints(key).value();
      for (const auto number : numbers) sum += static_cast<std::uint64_t>(number);
    });
    attempt([&] {
      const auto numbers = file.get_floats(key).value();
      for (const auto number : numbers) sum += number > 0;
    });
  }
  for (const Tensor& tensor : file.tensors()) {
    add_text(tensor.name);
    sum += tensor.row_length() * tensor.num_rows();
    std::vector<std::byte> made(tensor.made != nullptr ? tensor.row_bytes() : 0);
    sum += std::to_integer<std::uint64_t>(*tensor.row(0, made.data()));
    sum += std::to_integer<std::uint64_t>(tensor.row(tensor.num_rows() - 1, made.data())[tensor.row_bytes() - 1]);
    sum += file.find(tensor.name) == &tensor;
    file.read_ahead(tensor.bytes);
    file.drop(tensor.bytes);
  }
  return sum;
}

}  // namespace couplet::formats
