#pragma once
// Which of a repository's files make a model: the same rule on the hub's listing, when pulling, and on the files in the
// models folder, when a name is looked up. Paths are relative to the repository, parted by '/'.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace couplet::cli {

// A GGUF file, or all parts of a split one that are there.
struct GgufModel {
  std::vector<std::string> parts;  // in order
  std::size_t num_parts = 1;       // that it should have
  const std::string& path() const { return parts.front(); }
  bool whole() const { return parts.size() == num_parts; }
};
// Of all files whose name ends with ".gguf"; sorted.
std::vector<GgufModel> gguf_models(std::span<const std::string> paths);

// Those that `wanted` may mean: the path of a file (of a split model, of any part), or a quantization's tag, compared
// without case, that a name has between punctuation. Empty: Q4_K_M, else Q8_0, else all; projectors and importance
// matrices don't count.
std::vector<const GgufModel*> match_gguf(std::span<const GgufModel> models, std::string_view wanted);
// The only match. Throws Error{not_found} that begins with `where` and lists what there is.
const GgufModel& choose_gguf(std::span<const GgufModel> models, std::string_view wanted, std::string_view where);

bool is_folder_file(std::string_view path);  // it may be one of the following
// The files of a Hugging Face folder that an engine reads, with config.json last; none where there is no such model.
std::vector<std::string> folder_files(std::span<const std::string> paths);
inline constexpr std::string_view kFolderMark = "config.json";  // comes last, so a folder that has it is whole
inline constexpr std::string_view kFolderTag = "safetensors";   // as `wanted`: the folder, though there are GGUF files

}  // namespace couplet::cli
