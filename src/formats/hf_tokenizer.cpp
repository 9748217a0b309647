#include "formats/hf_tokenizer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "couplet/error.h"
#include "formats/printable.h"

namespace couplet::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostConfigBytes = std::size_t{16} << 20;
constexpr std::size_t kMostTemplates = 64;

// A token's text: a string, or an object that has it as "content".
std::optional<std::string> token_text(const JsonObject& json, const char* name) {
  if (!json.has(name)) return std::nullopt;
  if (json.is_string(name)) return std::string(*json.get_string(name));
  const auto content = json.get_object(name)->get_string("content");
  if (!content) json.refuse(name, "a string, or an object with its \"content\"", "neither");
  return std::string(*content);
}

void set_template(KeyValues& metadata, std::string_view name, std::string_view text) {
  const std::string key = "tokenizer.chat_template";
  metadata.set(name == "default" ? key : key + "." + std::string(name), std::string(text));
}

// One text, or a list of named ones.
void add_templates_of(const JsonObject& config, KeyValues& metadata) {
  constexpr const char* kKey = "chat_template";
  if (!config.is_array(kKey)) {
    if (const auto text = config.get_string(kKey)) set_template(metadata, "default", *text);
    return;
  }
  const auto named = config.get_objects(kKey);
  for (const JsonObject& one : *named) {
    const auto name = one.get_string("name"), text = one.get_string("template");
    if (!name || !text) one.refuse(name ? "template" : "name", "a string", "nothing");
    set_template(metadata, *name, *text);
  }
}

// Files of their own win over what tokenizer_config.json says.
bool add_template_files(FolderFiles& files, KeyValues& metadata) {
  constexpr const char* kFolder = "additional_chat_templates";
  bool found = false;
  if (files.has("chat_template.jinja")) {
    set_template(metadata, "default", files.text("chat_template.jinja"));
    found = true;
  }
  std::vector<fs::path> others;
  std::error_code problem;
  for (fs::directory_iterator entry(files.folder() / kFolder, problem), end; !problem && entry != end; entry.increment(problem))
    if (entry->path().extension() == ".jinja" && others.size() < kMostTemplates) others.push_back(entry->path().filename());
  std::ranges::sort(others);
  for (const fs::path& name : others) {
    set_template(metadata, name.stem().string(), files.text((fs::path(kFolder) / name).string()));
    found = true;
  }
  return found;
}

}  // namespace

bool FolderFiles::has(const std::string& name) const {
  std::error_code ignored;
  return fs::exists(folder_ / name, ignored);
}

std::string_view FolderFiles::text(const std::string& name) {
  const auto bytes = open(name).bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

JsonDocument FolderFiles::json(const std::string& name) {
  return JsonDocument(open(name).bytes(), "[folder] " + name, kMostConfigBytes, LongIntegers::cut);
}

void add_tokenizer_keys(FolderFiles& files, KeyValues& metadata) {
  const std::string prefix = "tokenizer.huggingface.";
  if (files.has("tokenizer.json")) metadata.set(prefix + "json", files.text("tokenizer.json"));
  const bool has_templates = add_template_files(files, metadata);
  bool config_is_whole = false;  // it says what each token is, and the older map has no more to say
  const auto add_tokens_of = [&](const JsonObject& json) {
    for (const std::string name : {"bos_token", "eos_token", "unk_token", "pad_token"})
      if (const auto text = token_text(json, name.c_str())) metadata.set(prefix + name, *text);
  };
  if (files.has("tokenizer_config.json")) {
    const JsonDocument config = files.json("tokenizer_config.json");
    if (const auto adds = config.root().get_bool("add_bos_token")) metadata.set(prefix + "add_bos_token", *adds);
    if (!has_templates) add_templates_of(config.root(), metadata);
    add_tokens_of(config.root());
    config_is_whole = config.root().has("added_tokens_decoder");
  }
  if (files.has("special_tokens_map.json") && !config_is_whole)
    add_tokens_of(files.json("special_tokens_map.json").root());
}

}  // namespace couplet::formats
