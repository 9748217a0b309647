#pragma once
// One safetensors file as a checked table. The file is hostile: every length, shape and offset is compared with its bytes
// before this returns, no byte belongs to two tensors and none to no tensor.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace couplet::formats {

struct SafeTensor {
  std::string name;
  std::string_view dtype;            // "BF16", one that safetensors knows
  std::vector<std::uint64_t> shape;  // the length of a row comes last; none: a scalar
  std::span<const std::byte> bytes;

  std::string shape_text() const;  // "160 x 96"
};

struct SafetensorsFile {
  std::vector<SafeTensor> tensors;  // in the order of their bytes
  std::span<const std::byte> header;
};

// Throws couplet::Error, "[safetensors] ...", unless all of it is sound.
SafetensorsFile read_safetensors(std::span<const std::byte> file);

}  // namespace couplet::formats
