#pragma once
// Names of models that a network has: hf.co/OWNER/NAME[@REVISION][:FILE] and URLs of GGUF files; and the place in the
// models folder that each stands for. All of it is text alone: nothing here opens a file or a connection. What comes from
// a network is hostile: a name that could lead out of its folder is no name.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace couplet::cli {

// A repository of the hub, and what is wanted of it.
struct HubName {
  std::string owner, name;
  std::string revision = "main";
  std::string wanted;  // a file, a quantization's tag such as Q5_K_M, "safetensors", or empty: the repository's best

  std::string repository() const { return owner + "/" + name; }
  std::string text() const;              // "hf.co/OWNER/NAME@REVISION:FILE"; "main" isn't said
  std::filesystem::path folder() const;  // in the models folder
};

struct UrlName {
  std::string url;              // to be asked for
  std::string name;             // the same without what stands behind a '?'
  std::filesystem::path place;  // in the models folder: scheme/host/path
};

using RemoteName = std::variant<HubName, UrlName>;

// nullopt: it isn't meant to be one. Throws Error{usage} that says what is wrong with one that is. A link to a file on
// the hub's pages is the name of that file.
std::optional<RemoteName> parse_remote_name(std::string_view text);

// A relative path of plain pieces: none empty, none that begins with a dot, no control characters, no backslash.
bool is_safe_path(std::string_view path);

inline constexpr std::string_view kHubFolder = "hf.co";

}  // namespace couplet::cli
