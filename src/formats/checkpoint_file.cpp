#include "formats/checkpoint_file.h"

#include <system_error>

#include "couplet/error.h"
#include "formats/gguf.h"
#include "formats/hf_folder.h"
#include "formats/printable.h"

namespace couplet::formats {

std::unique_ptr<CheckpointFile> CheckpointFile::open(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return std::make_unique<HfFolder>(path);
  if (path.extension() == ".safetensors" && std::filesystem::exists(path, ignored))
    throw Error(ErrorKind::unsupported, "[folder] " + in_quotes(path.native()) +
                                            ": expected the folder with config.json and tokenizer.json that it belongs to, "
                                            "got the file alone; give the folder's path");
  return std::make_unique<GgufFile>(path);
}

std::unique_ptr<CheckpointFile> CheckpointFile::parse(std::span<const std::byte> bytes) {
  return std::make_unique<GgufFile>(bytes);
}

}  // namespace couplet::formats
