#include "formats/gguf_split.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace couplet::formats {
namespace {

constexpr std::size_t kDigits = 5;

std::string five_digits(std::uint64_t number) { return std::to_string(100'000 + number).substr(1); }

// Takes five digits and the text before them off the end of `name`.
std::optional<std::uint64_t> take_number(std::string& name, std::string_view before) {
  if (name.size() < kDigits + before.size()) return std::nullopt;
  const std::string digits = name.substr(name.size() - kDigits);
  if (!std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  name.resize(name.size() - kDigits);
  if (!name.ends_with(before)) return std::nullopt;
  name.resize(name.size() - before.size());
  return std::stoull(digits);
}

}  // namespace

std::optional<SplitName> parse_split_name(const std::filesystem::path& path) {
  if (path.extension() != ".gguf") return std::nullopt;
  std::string name = path.stem().native();
  const auto num_parts = take_number(name, "-of-");
  if (!num_parts) return std::nullopt;
  const auto number = take_number(name, "-");
  if (!number || *number < 1 || *number > *num_parts) return std::nullopt;
  return SplitName{path.parent_path() / name, *number, *num_parts};
}

std::filesystem::path split_path(const SplitName& name, std::uint64_t number) {
  return name.stem.native() + "-" + five_digits(number) + "-of-" + five_digits(name.num_parts) + ".gguf";
}

}  // namespace couplet::formats
