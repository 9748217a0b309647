// Models from the hub and from URLs: which files, what they must be, how far it is, where they lie.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <system_error>

#include "couplet/error.h"
#include "fetch.h"
#include "hub.h"
#include "model_files.h"
#include "part_file.h"
#include "pull.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What was pulled, as it is told.
struct Pulled {
  std::string name;
  fs::path path;  // of the file, of a split model's first, or of the folder
  std::string terms;
  std::vector<std::pair<std::string, FetchedFile>> files;
};

void tell(const Pulled& pulled, std::uint64_t received, const PullOptions& options) {
  const bool there = std::ranges::all_of(pulled.files, [](const auto& file) { return file.second.was_there; });
  const char* state = there ? "already there" : "verified";
  const auto add = [](std::uint64_t sum, const auto& file) { return sum + file.second.bytes; };
  const std::uint64_t bytes = std::accumulate(pulled.files.begin(), pulled.files.end(), std::uint64_t{0}, add);
  const FetchedFile& first = pulled.files.front().second;
  const std::string checked = pulled.files.size() > 1 ? fmt::format("{} files", pulled.files.size())
                                                      : fmt::format("{} {}", first.digest.kind_name(), first.digest.hex);
  note(fmt::format("{}: {}: {} ({}, {}{})", visible(pulled.name), state, visible(pulled.path.string()), amount(bytes), checked, pulled.terms));
  if (!options.json) return;
  Json files = Json::array();
  for (const auto& [name, file] : pulled.files)
    files.push_back({{"file", name}, {"bytes", file.bytes}, {file.digest.kind == Digest::Kind::sha256 ? "sha256" : "git_blob", file.digest.hex}});
  const Json line = {{"name", pulled.name}, {"path", pulled.path.string()}, {"bytes", bytes},
                     {"state", state},      {"received_bytes", received},   {"files", files}};
  print(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

// The files that make the model, its mark (a folder's config.json, a split model's first part) at the end; and the
// path that names it, empty for a folder.
struct Choice {
  std::vector<HubFile> files;
  std::string path;
};

Choice choose(const std::vector<HubFile>& listed, const HubName& name) {
  std::vector<std::string> paths, chosen;
  for (const HubFile& file : listed) paths.push_back(file.path);
  const std::vector<GgufModel> models = gguf_models(paths);
  Choice choice;
  if (name.wanted == kFolderTag || (name.wanted.empty() && models.empty())) {
    chosen = folder_files(paths);
    if (chosen.empty())
      throw Error(ErrorKind::not_found,
                  fmt::format("[pull] {}: expected a GGUF file, or config.json and model.safetensors, the repository has neither", name.text()));
  } else {
    chosen = choose_gguf(models, name.wanted, "[pull] " + name.folder().string()).parts;
    choice.path = chosen.front();
    std::ranges::rotate(chosen, chosen.begin() + 1);
  }
  for (const std::string& path : chosen) choice.files.push_back(*std::ranges::find(listed, path, &HubFile::path));
  return choice;
}

bool is_there(const fs::path& path, const HubFile& file) { return verified_as(path / file.path) == file.digest.hex; }

// A folder whose files are about to change is not whole until its last one comes.
void take_mark_away(const fs::path& folder, const std::vector<HubFile>& files) {
  const auto changes = [&](const HubFile& file) { return !is_there(folder, file); };
  if (std::any_of(files.begin(), files.end() - 1, changes)) {
    std::error_code ignored;
    fs::remove(folder / files.back().path, ignored);
  }
}

void check_hub_answer(const Hub& hub, const HubName& name, const HubFile& file, const HttpAnswer& answer) {
  if (answer.status != 200 && answer.status != 206 && answer.status != 416) hub.refuse(answer, name, file.path);
  for (const auto* headers : {&answer.passed, &answer.headers}) {
    const auto linked = headers->find("x-linked-etag");
    if (linked == headers->end() || linked->second.size() != file.digest.hex.size() + 2) continue;
    if (linked->second != fmt::format("\"{}\"", file.digest.hex))
      throw Error(ErrorKind::io, fmt::format("[pull] {}:{}: the repository changed meanwhile: pull again", name.folder().string(), file.path));
  }
}

void pull_hub(const HubName& name, const fs::path& models, const PullOptions& options) {
  const Hub hub = Hub::from_environment();
  HttpClient client(options.timeout_s);
  const Choice choice = choose(hub.files(client, name, Retries(options.retries, note)), name);
  const fs::path folder = models / name.folder();
  Pulled pulled{name.folder().string() + (choice.path.empty() ? "" : ":" + choice.path), folder / choice.path, "; terms: " + hub.page(name), {}};

  std::uint64_t total = 0, missing = 0;
  for (const HubFile& file : choice.files) {
    total += file.bytes;
    if (!is_there(folder, file)) missing += file.bytes - std::min(file.bytes, part_bytes(folder / file.path));
  }
  require_space(folder, missing);
  if (missing > 0) note(fmt::format("{}: downloading {}", visible(pulled.name), amount(missing)));
  Progress progress(pulled.name, total, !options.quiet && !options.json);
  const Retries retries(options.retries, [&](const std::string& text) { progress.say(text); });
  take_mark_away(folder, choice.files);
  for (const HubFile& file : choice.files) {
    const auto check = [&](const HttpAnswer& answer) { check_hub_answer(hub, name, file, answer); };
    const FileToFetch wanted{hub.file_request(name, file.path), folder / file.path, file.bytes, file.digest, "", check};
    pulled.files.emplace_back(file.path, fetch_file(client, wanted, progress, retries));
  }
  progress.clear();
  tell(pulled, progress.received(), options);
}

void pull_url(const UrlName& name, const fs::path& models, const PullOptions& options) {
  HttpClient client(options.timeout_s);
  const Digest digest{Digest::Kind::sha256, options.sha256};
  const auto check = [&](const HttpAnswer& answer) {
    if (answer.status != 200 && answer.status != 206 && answer.status != 416)
      throw Error(answer.status == 404 ? ErrorKind::not_found : ErrorKind::io,
                  fmt::format("[pull] {}: expected the file, the server answered {}", name.name, answer.status));
  };
  const FileToFetch wanted{{name.url, "", "", 0, ""}, models / name.place, std::nullopt, digest, "GGUF", check};
  Progress progress(name.name, 0, !options.quiet && !options.json);
  const Retries retries(options.retries, [&](const std::string& text) { progress.say(text); });
  const FetchedFile fetched = fetch_file(client, wanted, progress, retries);
  progress.clear();
  tell({name.name, wanted.path, "", {{wanted.path.filename().string(), fetched}}}, progress.received(), options);
}

}  // namespace

void pull_remote(const RemoteName& name, const fs::path& folder, const PullOptions& options) {
  if (const auto* hub = std::get_if<HubName>(&name)) return pull_hub(*hub, folder, options);
  pull_url(std::get<UrlName>(name), folder, options);
}

}  // namespace couplet::cli
