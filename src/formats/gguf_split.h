#pragma once
// The names of a split checkpoint's parts: "NAME-00001-of-00003.gguf".

#include <cstdint>
#include <filesystem>
#include <optional>

namespace couplet::formats {

struct SplitName {
  std::filesystem::path stem;  // folder and NAME
  std::uint64_t number;        // from 1
  std::uint64_t num_parts;
};

// nullopt: `path` isn't named like a part.
std::optional<SplitName> parse_split_name(const std::filesystem::path& path);
std::filesystem::path split_path(const SplitName& name, std::uint64_t number);

}  // namespace couplet::formats
