#pragma once
// Bytes of a connection -> one HttpRequest, or the error to answer with. Knows no sockets. Strict where two readers of
// the same bytes could differ: no folded lines, no bare line feeds, one length only.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "server/exchange.h"

namespace couplet::server {

class RequestReader {
 public:
  RequestReader(std::size_t max_header_bytes, std::size_t max_body_bytes);
  ~RequestReader();
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  enum class Stage {
    empty,     // nothing of a request yet
    head,      // begun
    body,      // the head is read and found good; all of request() but the body stands
    complete,
    failed,    // see error(); nothing after this can be understood
  };
  // Takes what it can from the front of `input`, and stops where the stage changes.
  Stage feed(std::string& input);
  Stage stage() const;

  HttpRequest& request();
  const HttpReply& error() const;
  bool keeps_alive() const;        // what the client asked for
  bool is_http_1_0() const;
  bool expects_continue() const;
  std::size_t body_bytes() const;  // read so far

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "%41" -> "A"; false for what is no percent-encoding.
bool percent_decode(std::string_view text, std::string& decoded);

}  // namespace couplet::server
