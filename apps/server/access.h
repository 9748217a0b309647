#pragma once
// Who may ask: API keys, the Host that a request names (against DNS rebinding), the Origin of a page that sends it (CORS),
// and whose share of the engine it uses.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/exchange.h"
#include "server/options.h"

namespace couplet::server {

class Access {
 public:
  // Throws Error{usage} for keys that no header can carry. `is_loopback`: only this machine reaches the bound address.
  Access(const ServerOptions& options, bool is_loopback);

  // Judges a head and sets request.client. What comes back is the answer, no handler is asked: a refusal, or what a
  // browser asks before it sends the request itself.
  std::optional<HttpReply> judge(HttpRequest& request, const std::string& peer) const;

  // The headers that an answer to this request carries for its browser.
  std::vector<std::pair<std::string, std::string>> cors_headers(const HttpRequest& request) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest digest(std::string_view key);
  int find_key(const HttpRequest& request) const;  // -1: none that opens
  bool is_own_host(std::string_view host) const;
  bool is_allowed_origin(std::string_view origin) const;

  std::vector<Digest> keys_;
  bool checks_host_;
  std::vector<std::string> hosts_;    // lower case, without a port
  std::vector<std::string> origins_;  // lower case; "*": any
};

}  // namespace couplet::server
