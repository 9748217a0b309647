#include "model_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "couplet/error.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

constexpr std::size_t kLongestPiece = 200;  // leaves room for ".part" and the like
constexpr std::size_t kLongestPath = 1000;
constexpr std::string_view kForm = "hf.co/OWNER/NAME[@REVISION][:FILE]";

[[noreturn]] void refuse(std::string_view text, std::string_view expected, std::string_view got = "") {
  throw Error(ErrorKind::usage, fmt::format("[model] \"{}\": expected {}{}", text, expected, got.empty() ? "" : fmt::format(", got \"{}\"", got)));
}

// What the hub allows in the names of owners, repositories and (most) revisions.
bool is_plain(std::string_view piece) {
  const auto good = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; };
  return !piece.empty() && piece.size() <= kLongestPiece && piece[0] != '.' && piece[0] != '-' && std::ranges::all_of(piece, good);
}

std::string_view cut(std::string_view& text, char at) {  // what stands before `at`; `text` is left with what follows
  const std::size_t end = std::min(text.find(at), text.size());
  const std::string_view piece = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return piece;
}

HubName checked(std::string_view text, HubName name) {
  for (const std::string* piece : {&name.owner, &name.name, &name.revision})
    if (!is_plain(*piece)) refuse(text, kForm, *piece);
  if (!name.wanted.empty() && !is_safe_path(name.wanted)) refuse(text, "a path inside the repository behind the colon", name.wanted);
  return name;
}

HubName parse_hub_name(std::string_view text, std::string_view rest) {
  HubName name;
  const std::size_t colon = rest.find(':');
  if (colon != std::string_view::npos) {
    name.wanted = rest.substr(colon + 1);
    if (name.wanted.empty()) refuse(text, "a file or a quantization behind the colon");
    rest = rest.substr(0, colon);
  }
  const std::size_t at = rest.find('@');
  if (at != std::string_view::npos) {
    name.revision = rest.substr(at + 1);
    rest = rest.substr(0, at);
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  name.owner = cut(rest, '/');
  name.name = rest;
  return checked(text, name);
}

// A link as a browser shows it: OWNER/NAME, OWNER/NAME/tree/REVISION, OWNER/NAME/blob|resolve/REVISION/FILE?download=true.
HubName parse_hub_link(std::string_view text, std::string_view path) {
  path = path.substr(0, path.find_first_of("?#"));
  if (path.ends_with('/')) path.remove_suffix(1);
  HubName name;
  name.owner = cut(path, '/');
  name.name = cut(path, '/');
  if (path.empty()) return checked(text, name);
  const std::string_view kind = cut(path, '/');
  name.revision = cut(path, '/');
  name.wanted = path;
  const bool is_file = kind == "blob" || kind == "resolve";
  if (!(is_file && !path.empty()) && !(kind == "tree" && path.empty())) refuse(text, "a link to a repository or to a file of one");
  return checked(text, name);
}

UrlName parse_url(std::string_view text, std::string_view scheme) {
  constexpr std::string_view kExpected = "a URL http[s]://HOST/PATH.gguf";
  const auto printable = [](unsigned char c) { return c > 0x20 && c < 0x7F && c != '\\' && c != '"'; };
  if (!std::ranges::all_of(text, printable)) refuse(text, "a URL of printable ASCII characters");
  text = text.substr(0, text.find('#'));
  const std::string_view name = text.substr(0, text.find('?'));
  const std::string_view place = name.substr(scheme.size() + 3);
  const std::size_t slash = place.find('/');
  if (slash == std::string_view::npos || !place.ends_with(".gguf")) refuse(text, kExpected);
  if (place.substr(0, slash).find('@') != std::string_view::npos) refuse(text, "a URL without a user's name or password");
  if (!is_safe_path(place)) refuse(text, "a URL whose path has no empty and no hidden parts");
  return {std::string(text), std::string(name), std::filesystem::path(scheme) / place};
}

}  // namespace

std::string HubName::text() const {
  return folder().string() + (wanted.empty() ? "" : ":" + wanted);
}

std::filesystem::path HubName::folder() const {
  return std::filesystem::path(kHubFolder) / owner / (revision == "main" ? name : name + "@" + revision);
}

std::optional<RemoteName> parse_remote_name(std::string_view text) {
  constexpr std::array<std::string_view, 3> kNames = {"hf.co/", "huggingface.co/", "hf://"};
  constexpr std::array<std::string_view, 2> kLinks = {"https://huggingface.co/", "https://hf.co/"};
  for (const std::string_view prefix : kNames)
    if (text.starts_with(prefix)) return parse_hub_name(text, text.substr(prefix.size()));
  for (const std::string_view prefix : kLinks)
    if (text.starts_with(prefix)) return parse_hub_link(text, text.substr(prefix.size()));
  for (const std::string_view scheme : {"http", "https"})
    if (text.starts_with(std::string(scheme) + "://")) return parse_url(text, scheme);
  return std::nullopt;
}

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > kLongestPath || path.ends_with('/') || visible(path) != path || path.find('\\') != std::string_view::npos)
    return false;
  while (!path.empty()) {
    const std::string_view piece = cut(path, '/');
    if (piece.empty() || piece[0] == '.' || piece.size() > kLongestPiece) return false;
  }
  return true;
}

}  // namespace couplet::cli
