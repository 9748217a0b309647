// A Hugging Face folder of arbitrary bytes: config.json up to the first NUL, then model.safetensors. It is refused with
// couplet::Error, or every key and tensor can be read.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "couplet/error.h"
#include "formats/checkpoint_testing.h"
#include "formats/hf_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto config = bytes.first(static_cast<std::size_t>(std::ranges::find(bytes, std::byte{0}) - bytes.begin()));
  const auto weights = bytes.subspan(std::min(config.size() + 1, size));
  try {
    const couplet::formats::HfFolder folder(config, weights);
    couplet::formats::touch_everything(folder);
  } catch (const couplet::Error&) {
  }
  return 0;
}
