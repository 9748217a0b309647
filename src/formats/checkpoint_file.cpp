#include "formats/checkpoint_file.h"

#include <system_error>

#include "formats/gguf.h"
#include "formats/hf_folder.h"

namespace couplet::formats {

std::unique_ptr<CheckpointFile> CheckpointFile::open(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return std::make_unique<HfFolder>(path);
  return std::make_unique<GgufFile>(path);
}

std::unique_ptr<CheckpointFile> CheckpointFile::parse(std::span<const std::byte> bytes) {
  return std::make_unique<GgufFile>(bytes);
}

}  // namespace couplet::formats
