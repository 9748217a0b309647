#include "server/access.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cctype>

#include "couplet/error.h"
#include "server/error_reply.h"

namespace couplet::server {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// "localhost:8080" -> "localhost", "[::1]:8080" -> "[::1]"; "" for what is no host.
std::string host_name(std::string_view host) {
  const std::size_t bracket = host.starts_with('[') ? host.find(']') : 0;
  if (bracket == std::string_view::npos) return "";
  const std::size_t colon = std::min(host.find(':', bracket), host.size());
  if (!std::ranges::all_of(host.substr(std::min(colon + 1, host.size())), [](unsigned char c) { return std::isdigit(c); }))
    return "";
  return lower(host.substr(0, colon));
}

// 127.0.0.0/8 written out; what else means this machine is in the list of names.
bool is_loopback_address(std::string_view name) {
  return name.starts_with("127.") && std::ranges::count(name, '.') == 3 &&
         std::ranges::all_of(name, [](unsigned char c) { return c == '.' || std::isdigit(c); });
}

// The page and what tells that the server is there.
bool is_open(const HttpRequest& request) {
  const std::string& path = request.path;
  return (request.method == "GET" || request.method == "HEAD") &&
         (path == "/" || path == "/health" || path == "/favicon.ico" || path.starts_with("/assets/"));
}

bool is_preflight(const HttpRequest& request) {
  return request.method == "OPTIONS" && !request.header("access-control-request-method").empty();
}

}  // namespace

Access::Access(const ServerOptions& options, bool is_loopback)
    : checks_host_(is_loopback || !options.allowed_hosts.empty()), hosts_{"localhost", "[::1]"} {
  for (const std::string& key : options.api_keys) {
    if (key.empty() || !std::ranges::all_of(key, [](unsigned char c) { return c > 0x20 && c < 0x7f; }))
      throw Error(ErrorKind::usage, "[server] API key: expected printable ASCII without blanks, got something else");
    keys_.push_back(digest(key));
  }
  const bool is_ipv6 = options.host.find(':') != std::string::npos && !options.host.starts_with('[');
  hosts_.push_back(lower(is_ipv6 ? "[" + options.host + "]" : options.host));
  for (const std::string& host : options.allowed_hosts) hosts_.push_back(host_name(host));
  for (const std::string& origin : options.allowed_origins) origins_.push_back(lower(origin));
}

std::optional<HttpReply> Access::judge(HttpRequest& request, const std::string& peer) const {
  request.client = peer;
  const std::string_view host = request.header("host");
  if (checks_host_ && !host.empty() && !is_own_host(host))
    return error_reply(403, fmt::format("[http] Host: expected one of this server's names, got \"{}\"; another is allowed with "
                                        "--allowed-host", host), "host_not_allowed");
  const std::string_view origin = request.header("origin");
  const bool is_foreign = !origin.empty() && !origin.ends_with("://" + std::string(host));
  if (is_foreign && !is_allowed_origin(origin))
    return error_reply(403, fmt::format("[http] Origin: expected this server's page, got \"{}\"; another is allowed with "
                                        "--cors-origin", origin), "origin_not_allowed");
  if (is_preflight(request) && is_foreign) return HttpReply{.status = 204, .content_type = ""};
  if (keys_.empty() || is_open(request)) return std::nullopt;
  const int key = find_key(request);
  if (key < 0) {
    HttpReply reply = error_reply(401, "[http] Authorization: expected \"Bearer\" and one of this server's API keys, got none of them",
                                  "invalid_api_key");
    reply.headers.emplace_back("www-authenticate", "Bearer");
    return reply;
  }
  request.client = fmt::format("key:{}", key);
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> Access::cors_headers(const HttpRequest& request) const {
  if (origins_.empty()) return {};
  std::vector<std::pair<std::string, std::string>> headers{{"vary", "Origin"}};
  const std::string_view origin = request.header("origin");
  if (origin.empty() || !is_allowed_origin(origin)) return headers;
  headers.emplace_back("access-control-allow-origin", origin);
  headers.emplace_back("access-control-expose-headers", "x-request-id, retry-after");
  if (!is_preflight(request)) return headers;
  headers.emplace_back("access-control-allow-methods", "GET, POST, OPTIONS");
  headers.emplace_back("access-control-max-age", "600");
  if (const std::string_view wanted = request.header("access-control-request-headers"); !wanted.empty())
    headers.emplace_back("access-control-allow-headers", wanted);
  return headers;
}

Access::Digest Access::digest(std::string_view key) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  return digest;
}

// Every key is compared, over digests of one size: the time tells neither which nor how long.
int Access::find_key(const HttpRequest& request) const {
  std::string_view given = request.header("x-api-key");
  if (const std::string_view value = request.header("authorization"); !value.empty()) {
    if (lower(value.substr(0, 7)) != "bearer ") return -1;
    given = value.substr(std::min(value.find_first_not_of(' ', 7), value.size()));
  }
  const Digest wanted = digest(given);
  int found = -1;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (CRYPTO_memcmp(keys_[i].data(), wanted.data(), wanted.size()) == 0) found = static_cast<int>(i);
  }
  return found;
}

bool Access::is_own_host(std::string_view host) const {
  const std::string name = host_name(host);
  return !name.empty() && (is_loopback_address(name) || std::ranges::find(hosts_, name) != hosts_.end());
}

bool Access::is_allowed_origin(std::string_view origin) const {
  const std::string name = lower(origin);
  return std::ranges::any_of(origins_, [&](const std::string& allowed) { return allowed == "*" || allowed == name; });
}

}  // namespace couplet::server
