// The GGUF reader on arbitrary bytes: it refuses them with couplet::Error, or every key and tensor can be
// read.

#include <cstddef>
#include <cstdint>
#include <span>

#include "couplet/error.h"
#include "formats/checkpoint_file.h"
#include "formats/checkpoint_testing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using couplet::formats::CheckpointFile;
  try {
    const auto file = CheckpointFile::parse(std::as_bytes(std::span(data, size)));
    couplet::formats::touch_everything(*file);
    for (const auto& tensor : file->tensors()) {
      float row[1024];
      if (tensor.row_length() <= 1024) {
        couplet::formats::dequantize(tensor.type, tensor.bytes.data(), tensor.row_length(), row);
      }
    }
  } catch (const couplet::Error&) {
  }
  return 0;
}
