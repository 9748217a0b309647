#pragma once
// What `couplet serve` is told, beside EngineOptions: where it listens, who may ask, and what one client may cost.

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace couplet::server {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;                            // 0: any free one; what was bound is printed
  std::vector<std::string> api_keys = {};     // any of them opens every route; none: only a loopback host is allowed
  std::vector<std::string> allowed_hosts = {};    // beside loopback names and `host`: what Host may say
  std::vector<std::string> allowed_origins = {};  // CORS; none: off, and a foreign Origin is refused
  std::string tls_certificate = "", tls_key = ""; // PEM files; both or neither
  std::string model_name = "";                // as clients see it; empty: the checkpoint's
  bool log_json = false;

  std::size_t max_body_bytes = std::size_t{8} << 20;
  std::size_t max_header_bytes = std::size_t{32} << 10;
  std::size_t max_backlog_bytes = std::size_t{1} << 20;  // written for a client that does not read; then it is dropped
  int max_connections = 1024;
  int max_queue = 256;             // requests waiting in the engine; more get 429
  int max_prompt_tokens = 0;       // 0: what the context holds
  int max_output_tokens = 0;       // of one choice; 0: what the context holds
  int max_choices = 16;            // n

  std::chrono::milliseconds header_timeout{10'000};  // from the first byte (or accept) to the end of the headers
  std::chrono::milliseconds body_timeout{60'000};    // from there to the end of the body
  std::chrono::milliseconds idle_timeout{60'000};    // of a kept connection between requests
  std::chrono::milliseconds write_timeout{30'000};   // without a byte taken by the client
  std::chrono::milliseconds request_timeout{0};      // from the headers to the reply's end; 0: none
  std::chrono::milliseconds keep_alive_interval{15'000};  // an SSE comment where nothing else was sent
  std::chrono::milliseconds drain_timeout{30'000};   // after SIGTERM: what still runs then is cancelled
};

}  // namespace couplet::server
