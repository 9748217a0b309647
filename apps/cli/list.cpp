// couplet list and couplet rm: what lies in the models folder, and away with it.

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "catalogue.h"
#include "commands.h"
#include "couplet/checkpoint.h"
#include "couplet/error.h"
#include "digest.h"
#include "part_file.h"
#include "stored_models.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Description {
  std::string format, family;
  std::string problem;  // why it can't be opened
  PackedCopy packed;
};

Description describe(const StoredModel& model) {
  if (!model.whole) return {"", "", "only begun: couplet pull goes on", {}};
  try {
    const auto checkpoint = Checkpoint::open(model.path);
    const CheckpointSummary& summary = checkpoint->summary();
    return {summary.file_format, summary.family, "", checkpoint->packed_copy(packed_folder().string())};
  } catch (const Error& error) {
    return {"", "", error.what(), {}};
  }
}

// When every file of the model was verified as it lies there; nullopt: one wasn't.
std::optional<std::time_t> when_verified(const StoredModel& model) {
  std::time_t latest = 0;
  if (!model.whole) return std::nullopt;
  for (const fs::path& file : model.files) {
    const bool is_weights = file.extension() == ".gguf" || file.extension() == ".safetensors";
    struct stat info {};
    if (!is_weights) continue;
    if (!verified_as(file) || ::stat(stamp_path(file).c_str(), &info) != 0) return std::nullopt;
    latest = std::max(latest, info.st_mtim.tv_sec);
  }
  return latest;
}

Json to_json(const StoredModel& model, const Description& what) {
  const auto when = when_verified(model);
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  return {{"name", model.name},
          {"path", model.path.string()},
          {"bytes", model.bytes},
          {"state", when ? "verified" : model.whole ? "not verified" : "begun"},
          {"verified", when ? Json(fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(*when))) : Json(nullptr)},
          {"format", text_or_null(what.format)},
          {"family", text_or_null(what.family)},
          {"problem", text_or_null(what.problem)},
          {"packed_bytes", what.packed.state == PackedCopyState::present ? what.packed.bytes : 0}};
}

void show(const std::vector<StoredModel>& models) {
  int width = 4;
  for (const StoredModel& model : models) width = std::max(width, display_width(visible(model.name)));
  std::uint64_t bytes = 0, packed_bytes = 0;
  print(bold(fmt::format("{}  {:>8}  {:<22}  {:<10}  {:>8}\n", fit("name", width), "size", "type", "verified", "packed")));
  for (const StoredModel& model : models) {
    const Description what = describe(model);
    const auto when = when_verified(model);
    const bool packed = what.packed.state == PackedCopyState::present;
    print(fmt::format("{}  {:>8}  {}  {:<10}  {:>8}\n", fit(visible(model.name), width), amount(model.bytes),
                      what.problem.empty() ? fit(visible(what.format + " " + what.family), 22) : fit(model.whole ? "can't be opened" : "only begun", 22),
                      when ? fmt::format("{:%Y-%m-%d}", fmt::gmtime(*when)) : "no", packed ? amount(what.packed.bytes) : "-"));
    bytes += model.bytes;
    packed_bytes += packed ? what.packed.bytes : 0;
  }
  note(fmt::format("{} in {}, {} in packed copies", amount(bytes), visible(models_folder().string()), amount(packed_bytes)));
}

// The folders that held nothing else, up to the models folder.
void remove_empty_folders(fs::path folder, const fs::path& models) {
  for (std::error_code problem; folder != models && folder.string().starts_with(models.string()) && fs::remove(folder, problem);)
    folder = folder.parent_path();
}

const StoredModel one_of(const std::string& name, const fs::path& folder) {
  const auto names = [](const std::vector<StoredModel>& models) {
    std::string text;
    for (const StoredModel& model : models) text += (text.empty() ? "" : ", ") + model.name;
    return text.empty() ? "nothing" : text;
  };
  std::vector<StoredModel> meant = stored_as(name, folder);
  if (meant.empty())
    throw Error(ErrorKind::not_found, fmt::format("[rm] \"{}\" is not in {}, which has {}", name, folder.string(), names(stored_models(folder))));
  if (meant.size() > 1) throw Error(ErrorKind::not_found, fmt::format("[rm] \"{}\": expected one model's name, there are {}", name, names(meant)));
  return std::move(meant[0]);
}

std::uint64_t remove_file(const fs::path& path) {
  std::error_code problem;
  const std::uint64_t bytes = fs::file_size(path, problem);
  if (!fs::remove(path, problem) && problem) throw Error(ErrorKind::io, fmt::format("[rm] {}: {}", path.string(), problem.message()));
  return bytes;
}

void remove_model(const StoredModel& model, const fs::path& folder) {
  for (const fs::path& file : model.files)
    if (file.extension() == ".part" && part_is_locked(fs::path(file).replace_extension()))
      throw Error(ErrorKind::io, fmt::format("[rm] {}: another process is pulling it", model.name));
  const fs::path packed = describe(model).packed.path;
  std::error_code ignored;
  std::uint64_t bytes = fs::exists(packed, ignored) ? remove_file(packed) : 0;
  for (const fs::path& file : model.files) bytes += remove_file(file);
  for (const fs::path& file : model.files) remove_empty_folders(file.parent_path(), folder);
  note(fmt::format("{}: removed, {} free again", visible(model.name), amount(bytes)));
}

}  // namespace

int list_command(Arguments arguments) {
  CommandLine line("list", "Lists the models that were pulled, whole or begun, and their packed copies.");
  bool json = false, quiet = false;
  line.flag("--json", json, "A JSON object a line");
  line.flag("--quiet", quiet, "Nothing on stderr but errors");
  if (!line.parse(arguments)) return 0;
  if (quiet) set_quiet();
  const std::vector<StoredModel> models = stored_models(models_folder());
  if (models.empty()) note(fmt::format("nothing in {}; get a model with: couplet pull smollm2", visible(models_folder().string())));
  if (!json && !models.empty()) show(models);
  if (!json) return 0;
  for (const StoredModel& model : models) print(to_json(model, describe(model)).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  return 0;
}

int rm_command(Arguments arguments) {
  CommandLine line("rm", "Removes models that were pulled, with their stamps, terms and packed copies.");
  std::vector<std::string> names;
  bool quiet = false;
  line.positionals("NAME", names, "As couplet list gives it");
  line.flag("--quiet", quiet, "Nothing on stderr but errors");
  if (!line.parse(arguments)) return 0;
  if (quiet) set_quiet();
  const fs::path folder = models_folder();
  std::vector<StoredModel> models;
  for (const std::string& name : names) models.push_back(one_of(name, folder));
  for (const StoredModel& model : models) remove_model(model, folder);
  return 0;
}

}  // namespace couplet::cli
