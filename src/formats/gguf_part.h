#pragma once
// One GGUF file (of a split checkpoint: one part of it) as checked tables: its metadata and its tensors,
// which point into the file's bytes. Nothing here opens files; gguf.cpp does, and joins the parts.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/checkpoint_file.h"
#include "formats/gguf_metadata.h"

namespace couplet::formats {

struct GgufPart {
  std::uint32_t version;  // 2 or 3
  GgufMetadata metadata;
  std::vector<Tensor> tensors;      // in file order; their bytes lie in `data` and don't overlap
  std::span<const std::byte> data;  // from the start of the tensor data to the end of the file
};

// Throws couplet::Error, "[gguf] ...", unless all of it is sound.
GgufPart read_gguf_part(std::span<const std::byte> file);

}  // namespace couplet::formats
