#include "formats/hf_folder.h"

#include <algorithm>
#include <functional>
#include <map>
#include <system_error>
#include <utility>

#include "couplet/error.h"
#include "formats/name_index.h"
#include "formats/printable.h"

namespace couplet::formats {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWhole = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr std::size_t kMostConfigBytes = std::size_t{16} << 20;
constexpr std::size_t kMostIndexBytes = std::size_t{100} << 20;

[[noreturn]] void fail(std::string_view tensor, const std::string& problem) {
  throw Error(ErrorKind::format, "[safetensors] tensor " + in_quotes(tensor) + ": " + problem);
}

// Runs `read`; its errors end with the file's name.
template <class Read>
auto naming(const fs::path& path, Read read) try {
  return read();
} catch (const Error& error) {
  throw Error(error.kind(), std::string(error.what()) + " (in " + in_quotes(path.filename().native()) + ")");
}

// The first file, by name, that ends so; empty: none does.
std::string file_ending(const fs::path& folder, std::string_view end) {
  std::vector<std::string> names;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), last; !problem && entry != last; entry.increment(problem))
    if (entry->path().filename().native().ends_with(end)) names.push_back(entry->path().filename().string());
  const auto first = std::ranges::min_element(names);
  return first == names.end() ? "" : *first;
}

// Why a folder can't be run, and what to do; empty: it has what it takes.
std::string find_lack(const FolderFiles& files) {
  const bool has_weights = files.has(kWhole) || files.has(kIndex);
  if (has_weights && files.has("config.json")) return {};
  const std::string where = "[folder] " + in_quotes(files.folder().native()) + ": expected ";
  if (has_weights) return where + "config.json beside the weights, there is none";
  const std::string expected = where + "model.safetensors or model.safetensors.index.json, ";
  if (const std::string gguf = file_ending(files.folder(), ".gguf"); !gguf.empty())
    return expected + "there is the GGUF file " + in_quotes(gguf) + ": give its own path";
  if (const std::string other = file_ending(files.folder(), ".safetensors"); !other.empty())
    return expected + "there is " + in_quotes(other) + " alone";
  for (const char* end : {".bin", ".pth", ".pt"}) {
    const std::string pickle = file_ending(files.folder(), end);
    if (!pickle.empty())
      return expected + "there is " + in_quotes(pickle) +
             ", a pickle, which runs as a program when it is read: save the model as safetensors "
             "(save_pretrained() in transformers does)";
  }
  return expected + "there is neither";
}

}  // namespace

HfFolder::HfFolder(const fs::path& folder) : files_(folder) {
  lacks_weights_ = find_lack(files_);
  if (!lacks_weights_.empty() && !files_.has("tokenizer.json")) throw Error(ErrorKind::not_found, lacks_weights_);
  if (lacks_weights_.empty()) read_config();
  config_.metadata.set("general.name", fs::absolute(folder / "").lexically_normal().parent_path().filename().string());
  add_tokenizer_keys(files_, config_.metadata);
  if (lacks_weights_.empty()) tensors_ = HfTensors(config_, open_shards());
}

HfFolder::HfFolder(std::span<const std::byte> config, std::span<const std::byte> weights)
    : files_(fs::path()), config_(read_hf_config(JsonDocument(config, "[folder] config.json", kMostConfigBytes).root())) {
  file_bytes_ = weights.size();
  tensors_ = HfTensors(config_, read_safetensors(weights).tensors);
}

void HfFolder::read_config() {
  const MappedFile& file = files_.open("config.json");
  parts_.push_back({file.stamp(), file.bytes(), file.bytes()});
  const JsonDocument json(file.bytes(), "[folder] config.json", kMostConfigBytes, LongIntegers::cut);
  config_ = read_hf_config(json.root());
  std::vector<std::int64_t> end_ids = read_end_ids(json.root());
  if (files_.has("generation_config.json")) {
    const JsonDocument generation = files_.json("generation_config.json");
    add_sampling_keys(generation.root(), config_.metadata);
    if (generation.root().has("eos_token_id")) end_ids = read_end_ids(generation.root());
  }
  if (!end_ids.empty()) config_.metadata.set("tokenizer.huggingface.eos_token_ids", std::move(end_ids));
}

std::vector<SafeTensor> HfFolder::open_shards() {
  std::vector<SafeTensor> tensors = files_.has(kWhole) ? open_file(files_.folder() / kWhole) : open_listed_shards();
  std::rotate(parts_.begin(), parts_.begin() + 1, parts_.end());  // the weights first: they name a packed copy
  return tensors;
}

// The index says which file has which tensor; each file must have just those.
std::vector<SafeTensor> HfFolder::open_listed_shards() {
  const JsonDocument document(files_.open(kIndex).bytes(), std::string("[safetensors] ") + kIndex, kMostIndexBytes);
  const auto map = document.root().get_object("weight_map");
  if (!map) document.root().refuse("weight_map", "the file of each tensor", "nothing");
  std::map<std::string, std::vector<std::string_view>> shards;
  for (const auto& [tensor, shard] : map->all_strings()) {
    if (!is_printable(shard) || shard.find('/') != std::string_view::npos || !shard.ends_with(".safetensors"))
      map->refuse(tensor, "the name of a .safetensors file beside the index", in_quotes(shard));
    shards[std::string(shard)].push_back(tensor);
  }
  std::vector<SafeTensor> all;
  for (auto& [name, listed] : shards) {
    std::vector<SafeTensor> tensors = open_file(files_.folder() / name);
    const NameIndex present(tensors, [](const SafeTensor& tensor) -> std::string_view { return tensor.name; });
    for (const std::string_view tensor : listed)
      if (!present.find(tensor)) fail(tensor, "expected it in " + in_quotes(name) + ", as the index says, it isn't there");
    std::ranges::sort(listed);
    for (const SafeTensor& tensor : tensors)
      if (!std::ranges::binary_search(listed, tensor.name))
        fail(tensor.name, "expected it where the index says, " + in_quotes(name) + " has it too");
    std::ranges::move(tensors, std::back_inserter(all));
  }
  return all;
}

std::vector<SafeTensor> HfFolder::open_file(const fs::path& path) {
  MappedFile file(path);
  SafetensorsFile table = naming(path, [&] { return read_safetensors(file.bytes()); });
  file_bytes_ += file.bytes().size();
  parts_.push_back({file.stamp(), file.bytes(), table.header});
  shards_.push_back(std::move(file));
  return std::move(table.tensors);
}

std::optional<std::vector<std::string_view>> HfFolder::get_strings(std::string_view key) const {
  metadata().refuse_array(key);
  return std::nullopt;
}
std::optional<std::vector<float>> HfFolder::get_floats(std::string_view key) const {
  metadata().refuse_array(key);
  return std::nullopt;
}

// Advice is for the mappings alone: to drop what was made here would lose it.
bool HfFolder::is_mapped(std::span<const std::byte> bytes) const {
  return !bytes.empty() && std::ranges::any_of(parts_, [&](const FilePart& part) {
    return std::less_equal<>()(part.bytes.data(), bytes.data()) &&
           std::less<>()(bytes.data(), part.bytes.data() + part.bytes.size());
  });
}
void HfFolder::read_ahead(std::span<const std::byte> bytes) const {
  if (is_mapped(bytes)) formats::read_ahead(bytes);
}
void HfFolder::drop(std::span<const std::byte> bytes) const {
  if (is_mapped(bytes)) formats::drop_pages(bytes);
}

}  // namespace couplet::formats
