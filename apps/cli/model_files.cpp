#include "model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "couplet/error.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

constexpr std::string_view kGguf = ".gguf";
constexpr std::string_view kOne = "model.safetensors", kIndex = "model.safetensors.index.json";

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return result;
}

bool is_number(std::string_view text) {
  return text.size() == 5 && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

struct Part {
  std::string key;  // of the model: the stem and the number of parts
  int number = 1, of = 1;
};

// "NAME-00002-of-00003.gguf", or a file that is a model alone.
Part part_of(std::string_view path) {
  const std::string_view stem = path.substr(0, path.size() - kGguf.size());
  constexpr std::size_t kTail = 15;  // "-00002-of-00003"
  if (stem.size() > kTail) {
    const std::string_view tail = stem.substr(stem.size() - kTail), number = tail.substr(1, 5), of = tail.substr(10);
    if (tail[0] == '-' && tail.substr(6, 4) == "-of-" && is_number(number) && is_number(of) && number != "00000" && number <= of)
      return {std::string(stem.substr(0, stem.size() - kTail)) + "\n" + std::string(of), std::stoi(std::string(number)),
              std::stoi(std::string(of))};
  }
  return {std::string(stem), 1, 1};
}

// A piece of the name between punctuation: "Q4_K_M" in "gemma-Q4_K_M.gguf" and in "UD/model.q4_k_m-00001-of-00002.gguf".
bool has_tag(const std::string& path, const std::string& tag) {
  const std::string name = upper(path);
  const auto is_any = [](char c, std::string_view of) { return of.find(c) != std::string_view::npos; };
  for (std::size_t at = name.find(tag); at != std::string::npos; at = name.find(tag, at + 1)) {
    const std::size_t end = at + tag.size();
    if ((at == 0 || is_any(name[at - 1], "-._/")) && end < name.size() && is_any(name[end], "-./")) return true;
  }
  return false;
}

bool is_a_language_model(const GgufModel& model) {
  const std::string name = upper(model.path());
  return name.find("MMPROJ") == std::string::npos && name.find("IMATRIX") == std::string::npos;
}

std::string listed(std::span<const GgufModel* const> models) {
  constexpr std::size_t kMost = 40;
  std::string text;
  for (const GgufModel* model : models.first(std::min(models.size(), kMost)))
    text += (text.empty() ? "" : ", ") + visible(model->path());
  return models.size() > kMost ? fmt::format("{} and {} more", text, models.size() - kMost) : text;
}

bool is_shard(std::string_view path) {
  return path.starts_with("model-") && path.ends_with(".safetensors") && path.find('/') == std::string_view::npos;
}

const GgufModel* find_path(std::span<const GgufModel> models, std::string_view path) {
  for (const GgufModel& model : models)
    if (std::ranges::find(model.parts, path) != model.parts.end()) return &model;
  return nullptr;
}

}  // namespace

std::vector<GgufModel> gguf_models(std::span<const std::string> paths) {
  std::map<std::string, std::map<int, std::string>> by_key;
  std::map<std::string, std::size_t> num_parts;
  for (const std::string& path : paths) {
    if (!path.ends_with(kGguf) || path.size() == kGguf.size()) continue;
    const Part part = part_of(path);
    by_key[part.key].emplace(part.number, path);
    num_parts[part.key] = static_cast<std::size_t>(part.of);
  }
  std::vector<GgufModel> models;
  for (const auto& [key, parts] : by_key) {
    GgufModel model{{}, num_parts[key]};
    for (const auto& [number, path] : parts) model.parts.push_back(path);
    models.push_back(std::move(model));
  }
  std::ranges::sort(models, {}, [](const GgufModel& model) { return model.path(); });
  return models;
}

std::vector<const GgufModel*> match_gguf(std::span<const GgufModel> models, std::string_view wanted) {
  if (const GgufModel* exact = find_path(models, wanted)) return {exact};
  const auto with_tag = [&](const std::string& tag) {
    std::vector<const GgufModel*> matching;
    for (const GgufModel& model : models)
      if (is_a_language_model(model) && (tag.empty() || has_tag(model.path(), tag))) matching.push_back(&model);
    return matching;
  };
  if (!wanted.empty()) return with_tag(upper(wanted));
  for (const char* tag : {"Q4_K_M", "Q8_0"})
    if (auto matching = with_tag(tag); !matching.empty()) return matching;
  return with_tag("");
}

const GgufModel& choose_gguf(std::span<const GgufModel> models, std::string_view wanted, std::string_view where) {
  const auto refuse = [&](const std::string& what) { throw Error(ErrorKind::not_found, fmt::format("{}: expected {}", where, what)); };
  const std::vector<const GgufModel*> matching = match_gguf(models, wanted);
  if (matching.empty()) {
    std::vector<const GgufModel*> all;
    for (const GgufModel& model : models) all.push_back(&model);
    refuse(fmt::format("{}, there is {}", wanted.empty() ? "a GGUF file" : fmt::format("a GGUF file or quantization \"{}\"", visible(wanted)),
                       all.empty() ? "none" : listed(all)));
  }
  if (matching.size() > 1) refuse(fmt::format(":FILE that says which, there are {}", listed(matching)));
  const GgufModel& model = *matching[0];
  if (!model.whole()) refuse(fmt::format("{} parts of {}, there are {}", model.num_parts, visible(model.path()), model.parts.size()));
  return model;
}

bool is_folder_file(std::string_view path) {
  constexpr std::string_view kNames[] = {kFolderMark,          kOne,               kIndex,        "generation_config.json",
                                         "tokenizer.json",     "added_tokens.json", "vocab.json",  "tokenizer_config.json",
                                         "chat_template.jinja", "merges.txt",        "LICENSE",     "special_tokens_map.json",
                                         "LICENSE.txt",        "LICENSE.md",        "NOTICE"};
  return std::ranges::find(kNames, path) != std::end(kNames) || is_shard(path);
}

std::vector<std::string> folder_files(std::span<const std::string> paths) {
  const auto has = [&](std::string_view name) { return std::ranges::find(paths, name) != paths.end(); };
  if (!has(kFolderMark) || !(has(kOne) || has(kIndex))) return {};
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    const bool of_shards = path == kIndex || is_shard(path);  // where there is one file as well, the engine reads that
    if (is_folder_file(path) && path != kFolderMark && !(of_shards && has(kOne))) files.push_back(path);
  }
  files.emplace_back(kFolderMark);
  return files;
}

}  // namespace couplet::cli
