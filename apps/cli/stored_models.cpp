#include "stored_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <system_error>

#include "catalogue.h"
#include "couplet/error.h"
#include "digest.h"
#include "part_file.h"

namespace couplet::cli {
namespace {

namespace fs = std::filesystem;

// The regular files under `folder`, by their paths in it.
std::vector<std::string> files_under(const fs::path& folder) {
  std::vector<std::string> paths;
  std::error_code problem;
  for (fs::recursive_directory_iterator entry(folder, problem), end; !problem && entry != end; entry.increment(problem))
    if (std::error_code ignored; entry->is_regular_file(ignored)) paths.push_back(entry->path().lexically_relative(folder).generic_string());
  std::ranges::sort(paths);
  return paths;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end; entry.increment(problem))
    if (std::error_code ignored; entry->is_directory(ignored)) folders.push_back(entry->path());
  std::ranges::sort(folders);
  return folders;
}

// "model.gguf" of "model.gguf.part", and of itself.
std::string base_of(const std::string& path) {
  for (const fs::path& suffix : {stamp_path(""), part_state_path(""), part_path("")})
    if (path.ends_with(suffix.string())) return path.substr(0, path.size() - suffix.string().size());
  return path;
}

// What a pull puts there, finished or begun, by the paths of the finished files.
std::map<std::string, std::vector<std::string>> by_base(const std::vector<std::string>& paths) {
  std::map<std::string, std::vector<std::string>> files;
  for (const std::string& path : paths) files[base_of(path)].push_back(path);
  return files;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

StoredModel stored(std::string name, const fs::path& path, std::vector<fs::path> files) {
  StoredModel model{std::move(name), path, std::move(files), 0, is_there(path), {}};
  for (const fs::path& file : model.files) {
    std::error_code problem;
    const std::uint64_t bytes = fs::file_size(file, problem);
    if (!problem) model.bytes += bytes;
  }
  return model;
}

void add_catalogue(const fs::path& folder, std::vector<StoredModel>& models) {
  for (const CatalogueEntry& entry : catalogue()) {
    const std::string name(entry.name);
    const fs::path path = folder / (name + ".gguf");
    std::vector<fs::path> files;
    for (const fs::path& file : {path, stamp_path(path), folder / (name + std::string(entry.terms_suffix))})
      if (is_there(file)) files.push_back(file);
    if (is_there(path)) models.push_back(stored(name, path, files));
  }
}

void add_repository(const fs::path& folder, const std::string& name, std::vector<StoredModel>& models) {
  const auto files = by_base(files_under(folder));
  std::vector<std::string> bases;
  std::vector<fs::path> of_folder;
  const auto paths_of = [&](const std::string& base, std::vector<fs::path>& into) {
    for (const std::string& path : files.at(base)) into.push_back(folder / path);
  };
  for (const auto& [base, paths] : files) {
    bases.push_back(base);
    if (is_folder_file(base)) paths_of(base, of_folder);
  }
  const std::vector<GgufModel> ggufs = gguf_models(bases);
  for (const GgufModel& gguf : ggufs) {
    std::vector<fs::path> of_model;
    for (const std::string& part : gguf.parts) paths_of(part, of_model);
    StoredModel model = stored(fmt::format("{}:{}", name, gguf.path()), folder / gguf.path(), of_model);
    model.whole = gguf.whole() && std::ranges::all_of(gguf.parts, [&](const std::string& part) { return is_there(folder / part); });
    model.gguf = gguf;
    models.push_back(std::move(model));
  }
  if (of_folder.empty()) return;
  StoredModel model = stored(ggufs.empty() ? name : fmt::format("{}:{}", name, kFolderTag), folder, of_folder);
  model.whole = is_there(folder / kFolderMark);
  models.push_back(std::move(model));
}

void add_urls(const fs::path& folder, std::vector<StoredModel>& models) {
  for (const std::string scheme : {"http", "https"}) {
    for (const auto& [base, paths] : by_base(files_under(folder / scheme))) {
      if (!base.ends_with(".gguf")) continue;
      std::vector<fs::path> files;
      for (const std::string& path : paths) files.push_back(folder / scheme / path);
      models.push_back(stored(scheme + "://" + base, folder / scheme / base, files));
    }
  }
}

// `stored` is from the repository that `asked` names, and nothing in `asked` speaks against it.
bool may_mean(const HubName& asked, const StoredModel& model) {
  const auto remote = parse_remote_name(model.name);
  const auto* name = remote ? std::get_if<HubName>(&*remote) : nullptr;
  if (name == nullptr || name->folder() != asked.folder()) return false;
  if (asked.wanted.empty() || model.gguf.parts.empty()) return asked.wanted.empty() || asked.wanted == kFolderTag;
  return !match_gguf({&model.gguf, 1}, asked.wanted).empty();
}

}  // namespace

std::vector<StoredModel> stored_models(const fs::path& models_folder) {
  std::vector<StoredModel> models;
  add_catalogue(models_folder, models);
  for (const fs::path& owner : folders_in(models_folder / kHubFolder))
    for (const fs::path& repository : folders_in(owner))
      add_repository(repository, repository.lexically_relative(models_folder).generic_string(), models);
  add_urls(models_folder, models);
  return models;
}

std::vector<StoredModel> stored_as(const std::string& name, const fs::path& models_folder) {
  const auto remote = parse_remote_name(name);
  const auto* hub = remote ? std::get_if<HubName>(&*remote) : nullptr;
  const auto* url = remote ? std::get_if<UrlName>(&*remote) : nullptr;
  std::vector<StoredModel> all = stored_models(models_folder), meant;
  const auto is_meant = [&](const StoredModel& model) {
    std::error_code ignored;
    return model.name == name || (hub && may_mean(*hub, model)) || (url && model.name == url->name) ||
           (!remote && fs::equivalent(model.path, name, ignored));
  };
  std::ranges::copy_if(all, std::back_inserter(meant), is_meant);
  const auto exact = std::ranges::find(meant, name, &StoredModel::name);
  return exact == meant.end() ? meant : std::vector{*exact};
}

fs::path find_stored(const RemoteName& name, const fs::path& models_folder) {
  const auto* hub = std::get_if<HubName>(&name);
  const std::string text = hub ? hub->text() : std::get<UrlName>(name).name;
  if (hub == nullptr) {
    const fs::path path = models_folder / std::get<UrlName>(name).place;
    if (is_there(path)) return path;
  } else {
    const fs::path folder = models_folder / hub->folder();
    const std::vector<std::string> paths = files_under(folder);
    const std::vector<GgufModel> models = gguf_models(paths);
    const bool of_folder = hub->wanted == kFolderTag || (hub->wanted.empty() && models.empty());
    if (of_folder && is_there(folder / kFolderMark)) return folder;
    if (!of_folder && !match_gguf(models, hub->wanted).empty()) return folder / choose_gguf(models, hub->wanted, "[model] " + text).path();
  }
  throw Error(ErrorKind::not_found,
              fmt::format("[model] {} is not in {}: get it with: couplet pull {}", text, models_folder.string(), text));
}

}  // namespace couplet::cli
