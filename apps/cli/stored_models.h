#pragma once
// What lies in the models folder: whole models and begun ones, with all files that pulls have put there. Only looks.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model_files.h"
#include "model_name.h"

namespace couplet::cli {

struct StoredModel {
  std::string name;                          // as commands take it
  std::filesystem::path path;                // what opens it
  std::vector<std::filesystem::path> files;  // all of them, with stamps, terms and parts
  std::uint64_t bytes = 0;                   // of all files
  bool whole = false;                        // else only begun
  GgufModel gguf;                            // of a hub's GGUF model: its paths in the repository
};

// Those of the catalogue, then the hub's, then the URLs'; each sorted by name.
std::vector<StoredModel> stored_models(const std::filesystem::path& models_folder);

// Those that `name` or a path may mean; several where a repository's name alone was given.
std::vector<StoredModel> stored_as(const std::string& name, const std::filesystem::path& models_folder);

// The whole model that `name` means; throws Error{not_found} that says how to get it.
std::filesystem::path find_stored(const RemoteName& name, const std::filesystem::path& models_folder);

}  // namespace couplet::cli
