#include "hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "couplet/error.h"
#include "model_files.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t kMostListingBytes = std::size_t{32} << 20;
constexpr std::size_t kMostFiles = 100'000;
constexpr int kMostPages = 200;
constexpr int kMaxDepth = 16;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// As the hub's own client looks for it.
fs::path token_path() {
  const auto from_home = [](const std::string& path) {
    return path == "~" || path.starts_with("~/") ? fs::path(variable("HOME") + path.substr(1)) : fs::path(path);
  };
  if (const std::string path = variable("HF_TOKEN_PATH"); !path.empty()) return from_home(path);
  if (const std::string home = variable("HF_HOME"); !home.empty()) return from_home(home) / "token";
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return from_home(cache) / "huggingface" / "token";
  return from_home("~/.cache/huggingface/token");
}

std::string read_token(const fs::path& path) {
  constexpr std::streamsize kMostBytes = 4096;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostBytes, '\0');
  file.read(text.data(), kMostBytes);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return trimmed(text);
}

bool is_a_token(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c > 0x20 && c < 0x7F; });
}

std::string percent_encoded(std::string_view path) {
  std::string text;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = byte < 0x80 && (std::isalnum(byte) || std::string_view("-._~/").find(c) != std::string_view::npos);
    text += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return text;
}

[[noreturn]] void refuse_listing(const std::string& what) {
  throw Error(ErrorKind::format, "[pull] the hub's list of files: expected " + what);
}

Json parse_listing(const std::string& text) {
  const auto check_depth = [](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) refuse_listing(fmt::format("at most {} levels of nesting, got more", kMaxDepth));
    return true;
  };
  Json list;
  try {
    list = Json::parse(text, check_depth);
  } catch (const Json::exception&) {
    refuse_listing("JSON, got something else");
  }
  if (!list.is_array()) refuse_listing("a JSON list, got another value");
  return list;
}

std::string string_of(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

HubFile parse_file(const Json& entry, const std::string& path) {
  if (!is_safe_path(path)) refuse_listing(fmt::format("a plain path inside the repository, got \"{}\"", visible(path)));
  const auto lfs = entry.find("lfs");
  const bool is_large = lfs != entry.end() && lfs->is_object();
  const Json& facts = is_large ? *lfs : entry;
  const auto size = facts.find("size");
  if (size == facts.end() || !size->is_number_integer() || *size < 0 || *size > kMostFileBytes)
    refuse_listing(fmt::format("a size from 0 to {} for {}, got another", kMostFileBytes, path));
  const auto digest = parse_digest(is_large ? Digest::Kind::sha256 : Digest::Kind::git_blob, string_of(facts, "oid"));
  if (!digest) refuse_listing(fmt::format("a {} for {}, got none", is_large ? "sha256" : "git hash", path));
  return {path, size->get<std::uint64_t>(), *digest};
}

// Of `<URL>; rel="next", <...>`.
std::string next_page(const HttpAnswer& answer) {
  const std::string* link = answer.header("link");
  const std::size_t rel = link == nullptr ? std::string::npos : link->find("; rel=\"next\"");
  if (rel == std::string::npos || rel == 0 || (*link)[rel - 1] != '>') return "";
  const std::size_t begin = link->rfind('<', rel);
  return begin == std::string::npos ? "" : link->substr(begin + 1, rel - begin - 2);
}

}  // namespace

Hub Hub::from_environment() {
  Hub hub;
  hub.endpoint_ = variable("HF_ENDPOINT");
  if (hub.endpoint_.empty()) hub.endpoint_ = "https://huggingface.co";
  while (hub.endpoint_.ends_with('/')) hub.endpoint_.pop_back();
  if (!hub.endpoint_.starts_with("https://") && !hub.endpoint_.starts_with("http://"))
    throw Error(ErrorKind::usage, fmt::format("[pull] HF_ENDPOINT: expected an http or https URL, got \"{}\"", hub.endpoint_));
  hub.origin_ = origin_of(hub.endpoint_);
  hub.token_source_ = "HF_TOKEN";
  hub.token_ = trimmed(variable("HF_TOKEN"));
  if (hub.token_.empty()) {
    hub.token_source_ = token_path().string();
    hub.token_ = read_token(hub.token_source_);
  }
  if (!is_a_token(hub.token_))
    throw Error(ErrorKind::usage, fmt::format("[pull] {}: expected a token of printable ASCII characters", hub.token_source_));
  return hub;
}

std::string Hub::listing(HttpClient& client, const HubName& repository, std::string& url) const {
  std::string text;
  const HttpAnswer answer = client.get(
      request(url), [](const HttpAnswer& begun) { return begun.status == 200; },
      [&](std::string_view bytes) {
        if (text.size() + bytes.size() > kMostListingBytes) refuse_listing(fmt::format("at most {} bytes, got more", kMostListingBytes));
        text += bytes;
      });
  if (answer.status != 200) refuse(answer, repository, "");
  const std::string next = next_page(answer);
  url = next.empty() ? "" : absolute_url(url, next);
  if (!next.empty() && (url.empty() || origin_of(url) != origin_)) refuse_listing(fmt::format("its next page at {}, got \"{}\"", origin_, next));
  return text;
}

std::vector<HubFile> Hub::files(HttpClient& client, const HubName& repository, Retries retries) const {
  std::vector<HubFile> files;
  std::string url = fmt::format("{}/api/models/{}/tree/{}?recursive=true", endpoint_, repository.repository(), repository.revision);
  for (int page = 0; !url.empty(); ++page) {
    if (page == kMostPages || files.size() > kMostFiles) refuse_listing(fmt::format("at most {} files, got more", kMostFiles));
    std::string text;
    retries.run([&] { text = listing(client, repository, url); });
    for (const Json& entry : parse_listing(text)) {
      const std::string path = string_of(entry, "path");
      if (string_of(entry, "type") == "file" && (path.ends_with(".gguf") || is_folder_file(path))) files.push_back(parse_file(entry, path));
    }
  }
  return files;
}

HttpRequest Hub::file_request(const HubName& repository, const std::string& path) const {
  return request(fmt::format("{}/{}/resolve/{}/{}", endpoint_, repository.repository(), repository.revision, percent_encoded(path)));
}

void Hub::refuse(const HttpAnswer& answer, const HubName& repository, const std::string& path) const {
  const std::string terms = fmt::format("accept the terms at {} and set HF_TOKEN to a token that may read it", page(repository));
  const std::string* code = answer.header("x-error-code");
  const auto error = [&](ErrorKind kind, const std::string& what) {
    return Error(kind, fmt::format("[pull] {}{}: {}", repository.folder().string(), path.empty() ? "" : ":" + path, what));
  };
  if (answer.status == 403 || (code != nullptr && *code == "GatedRepo")) throw error(ErrorKind::not_found, "access is not granted: " + terms);
  if (answer.status == 401 && !token_.empty())
    throw error(ErrorKind::not_found, fmt::format("the hub refused the token of {}: set HF_TOKEN to a good one, or remove it", token_source_));
  if (answer.status == 401) throw error(ErrorKind::not_found, "there is no such repository, or it isn't public: if it is private or gated, " + terms);
  if (answer.status == 404 && code != nullptr && *code == "RevisionNotFound")
    throw error(ErrorKind::not_found, fmt::format("the repository has no revision \"{}\"", repository.revision));
  if (answer.status == 404) throw error(ErrorKind::not_found, path.empty() ? "there is no such repository" : "the repository has no such file");
  throw error(ErrorKind::io, fmt::format("{} answered {}", origin_, answer.status));
}

}  // namespace couplet::cli
