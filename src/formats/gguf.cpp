#include "formats/gguf.h"

#include <string>
#include <utility>

#include "couplet/error.h"
#include "formats/gguf_split.h"
#include "formats/printable.h"

namespace couplet::formats {
namespace {

[[noreturn]] void fail(ErrorKind kind, const std::string& problem) { throw Error(kind, "[gguf] " + problem); }

std::uint64_t num_parts_of(const GgufMetadata& metadata) {
  constexpr std::uint64_t kMostParts = 65'535;  // the key is a u16
  const std::uint64_t count = metadata.get_uint("split.count").value_or(1);
  if (count < 1 || count > kMostParts) {
    fail(ErrorKind::format, "key \"split.count\": expected 1 to 65535, file says " + std::to_string(count));
  }
  return count;
}

// Reads part `number` (from 1), which must say of itself what its name says. Its errors end with that name.
GgufPart read_numbered_part(std::span<const std::byte> file, std::uint64_t number, std::uint64_t num_parts,
                            const std::filesystem::path& path) try {
  GgufPart part = read_gguf_part(file);
  const auto check = [&](const char* key, std::uint64_t expected) {
    const auto value = part.metadata.get_uint(key);
    if (value == expected) return;
    fail(ErrorKind::format, std::string("key \"") + key + "\": expected " + std::to_string(expected) +
                                ", file says " + (value ? std::to_string(*value) : "nothing"));
  };
  check("split.count", num_parts);
  check("split.no", number - 1);
  return part;
} catch (const Error& error) {
  throw Error(error.kind(), std::string(error.what()) + " (in " + in_quotes(path.filename().native()) + ")");
}

}  // namespace

// llama.cpp's converter interleaves the halves in llama and granite files. DeepSeek's own checkpoints do.
bool holds_pairs(std::string_view architecture, std::string_view name) {
  const bool is_deepseek = architecture == "deepseek2";
  if (architecture != "llama" && architecture != "granite" && !is_deepseek) return false;
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  const std::size_t digits = name.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return false;
  name.remove_prefix(digits);
  if (is_deepseek) return name == ".attn_q.weight" || name == ".attn_q_b.weight" || name == ".attn_kv_a_mqa.weight";
  return name == ".attn_q.weight" || name == ".attn_k.weight" || name == ".attn_q.bias" || name == ".attn_k.bias";
}

GgufFile::GgufFile(const std::filesystem::path& path) {
  MappedFile file(path);
  GgufPart part = read_gguf_part(file.bytes());
  const std::uint64_t num_parts = num_parts_of(part.metadata);
  if (num_parts > 1) {
    join_parts(path, num_parts);
  } else {
    add_file(std::move(file), std::move(part));
  }
  finish();
}

GgufFile::GgufFile(std::span<const std::byte> bytes) {
  GgufPart part = read_gguf_part(bytes);
  if (num_parts_of(part.metadata) > 1) {
    fail(ErrorKind::unsupported, "key \"split.count\": expected a whole file, this is one part of several");
  }
  file_bytes_ = bytes.size();
  add_part(std::move(part));
  finish();
}

void GgufFile::join_parts(const std::filesystem::path& path, std::uint64_t num_parts) {
  const auto name = parse_split_name(path);
  if (!name || name->num_parts != num_parts) {
    fail(ErrorKind::format, "file " + in_quotes(path.filename().native()) +
                                ": expected a name like NAME-00001-of-" +
                                std::to_string(100'000 + num_parts).substr(1) + ".gguf for one part of " +
                                std::to_string(num_parts));
  }
  for (std::uint64_t number = 1; number <= num_parts; ++number) {
    const auto part_path = split_path(*name, number);
    MappedFile file(part_path);
    GgufPart part = read_numbered_part(file.bytes(), number, num_parts, part_path);
    add_file(std::move(file), std::move(part));
  }
  const auto num_tensors = metadata_.get_uint("split.tensors.count");
  if (num_tensors != tensors_.size()) {
    fail(ErrorKind::format, "key \"split.tensors.count\": expected the " + std::to_string(tensors_.size()) +
                                " tensors of all parts, file says " +
                                (num_tensors ? std::to_string(*num_tensors) : "nothing"));
  }
}

void GgufFile::add_file(MappedFile file, GgufPart part) {
  const std::size_t header_bytes = file.bytes().size() - part.data.size();
  file_bytes_ += file.bytes().size();
  parts_.push_back({file.stamp(), file.bytes(), file.bytes().first(header_bytes)});
  files_.push_back(std::move(file));
  add_part(std::move(part));
}

void GgufFile::add_part(GgufPart part) {
  if (version_ == 0) {
    version_ = part.version;
    metadata_ = std::move(part.metadata);
  }
  tensors_.insert(tensors_.end(), part.tensors.begin(), part.tensors.end());
}

void GgufFile::finish() {
  index_ = NameIndex(tensors_, [](const Tensor& tensor) { return tensor.name; });
  if (const auto twice = index_.duplicate()) {
    fail(ErrorKind::format, "tensor " + in_quotes(*twice) + ": expected it in one part, several have it");
  }
  const std::string_view architecture = metadata_.get_string("general.architecture").value_or("");
  for (Tensor& tensor : tensors_) {
    if (holds_pairs(architecture, tensor.name)) tensor.rope_order = RopeOrder::pairs;
  }
}

const Tensor* GgufFile::find(std::string_view name) const {
  const auto position = index_.find(name);
  return position ? &tensors_[*position] : nullptr;
}

void GgufFile::read_ahead(std::span<const std::byte> bytes) const {
  if (files_.empty()) return;  // the caller's memory is no mapping of ours
  formats::read_ahead(bytes);
}

void GgufFile::drop(std::span<const std::byte> bytes) const {
  if (files_.empty()) return;  // dropping pages that no file backs would lose the caller's bytes
  formats::drop_pages(bytes);
}

}  // namespace couplet::formats
