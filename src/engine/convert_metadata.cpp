#include "engine/convert_metadata.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "formats/gguf.h"
#include "formats/hf_folder.h"
#include "text/gguf_vocabulary.h"
#include "text/load.h"

namespace couplet::engine {
namespace {

// Of the way blocks are laid out; the only one in use.
constexpr std::uint32_t kQuantizationVersion = 2;

void copy_metadata(const formats::GgufFile& file, formats::GgufWriter& writer) {
  for (const formats::GgufMetadata::Entry& entry : file.metadata().entries())
    if (!entry.key.starts_with("split.") && entry.key != "general.alignment") writer.set(entry);
}

// The tokenizer's files are said in GGUF's words instead.
constexpr std::string_view kFolderOnly = "tokenizer.huggingface.";

void set(formats::GgufWriter& writer, const std::string& key, const formats::KeyValues::Value& value) {
  const auto fits = [](auto number) { return std::in_range<std::int32_t>(number); };
  if (const auto* number = std::get_if<std::uint64_t>(&value); number != nullptr && std::in_range<std::uint32_t>(*number))
    return writer.set(key, static_cast<std::uint32_t>(*number));
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&value); numbers != nullptr && std::ranges::all_of(*numbers, fits))
    return writer.set(key, std::vector<std::int32_t>(numbers->begin(), numbers->end()));
  std::visit([&](const auto& one) { writer.set(key, one); }, value);
}

// Where a reply ends. GGUF has a key for the tokenizer's own end and two for others; readers know more by their names.
void write_end_tokens(const formats::HfFolder& folder, formats::GgufWriter& writer) {
  std::vector<std::int64_t> ends = folder.get_ints("tokenizer.huggingface.eos_token_ids").value_or(std::vector<std::int64_t>());
  if (const auto own = text::load_tokenizer(folder)->eos_id(); own >= 0) {
    std::erase(ends, own);
    ends.insert(ends.begin(), own);
  }
  constexpr const char* kKeys[] = {"eos_token_id", "eot_token_id", "eom_token_id"};
  for (std::size_t i = 0; i < std::min(ends.size(), std::size(kKeys)); ++i)
    writer.set(std::string("tokenizer.ggml.") + kKeys[i], static_cast<std::uint32_t>(ends[i]));
}

void write_folder_metadata(const formats::HfFolder& folder, formats::GgufWriter& writer) {
  writer.set("general.architecture", *folder.get_string("general.architecture"));
  writer.set("general.type", "model");
  for (const auto& [key, value] : folder.metadata().all())
    if (!key.starts_with(kFolderOnly)) set(writer, key, value);
  const formats::Tensor* embedding = folder.find("token_embd.weight");
  text::write_vocabulary(folder, embedding == nullptr ? 0 : static_cast<int>(embedding->num_rows()), writer);
  write_end_tokens(folder, writer);
}

}  // namespace

void write_metadata(const formats::CheckpointFile& file, const formats::Mix& mix, formats::GgufWriter& writer) {
  if (const auto* gguf = dynamic_cast<const formats::GgufFile*>(&file)) copy_metadata(*gguf, writer);
  if (const auto* folder = dynamic_cast<const formats::HfFolder*>(&file)) write_folder_metadata(*folder, writer);
  if (mix.name == "as-is") return;
  writer.set("general.file_type", mix.file_type);
  writer.set("general.quantization_version", kQuantizationVersion);
}

}  // namespace couplet::engine
