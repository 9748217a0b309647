#pragma once
// One HTTP request and the way back to its client: the seam between the HTTP layer, which knows sockets and nothing of
// models, and the routes, which know models and no sockets. Io thread only; everything given is copied or moved.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace couplet::server {

struct HttpRequest {
  std::string method;  // "POST"
  std::string path;    // "/v1/models", percent-decoded, without the query
  std::string query;   // as sent, without "?"
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  std::string id;      // x-request-id: the client's where it is 1 to 128 printable ASCII characters, else drawn
  std::string client;  // who shares the engine fairly: the API key's number, or the peer's address

  std::string_view header(std::string_view lower_case_name) const;  // the first; "" where there is none
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = "";
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const HttpRequest& request() const = 0;

  // Either a whole reply, once ...
  virtual void reply(HttpReply reply) = 0;
  // ... or a stream: its head (an empty body), pieces, end. A piece is queued and sent as the client reads; whoever lets
  // more than max_backlog_bytes pile up, or takes nothing for write_timeout, is dropped and counts as gone. An event
  // stream's piece is whole events; where none comes for keep_alive_interval, the HTTP layer writes a comment, and where
  // the server has to end the stream, an event with the error.
  virtual void begin_stream(HttpReply head) = 0;
  virtual void write(std::string_view bytes) = 0;
  virtual void end_stream() = 0;

  // Called at most once, when the client left, was dropped or was answered with an error (request_timeout, the end of
  // draining) before its reply was complete, during a silent wait too. A client that closes its sending side alone has
  // left, unless its reply is complete by then. Later writes are ignored. Called at once (posted) where the client has gone already.
  virtual void on_gone(std::function<void()> call) = 0;
  virtual bool gone() const = 0;
};

// Called for each request whose headers, key, host and size were found good. Must not throw or block; replies at once or
// keeps the exchange.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

// Told of each request that the HTTP layer answered with an error, no handler was asked: of one that could not be read,
// as much as was understood.
using Refused = std::function<void(const HttpRequest&, int status)>;

}  // namespace couplet::server
