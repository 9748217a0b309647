#pragma once
// Sockets, TLS, HTTP/1.1 and who may come in: accepts connections on the io thread, reads requests within the limits of
// ServerOptions, refuses what has no key or a foreign Host or Origin, and hands the rest to one Handler.

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>

#include "server/exchange.h"
#include "server/options.h"

namespace couplet::server {

class HttpServer {
 public:
  // Binds. Throws Error{usage} for options that contradict each other (another address than loopback without a key, a
  // certificate without its key), Error{io} where the address can't be had.
  HttpServer(boost::asio::io_context& io, const ServerOptions& options, Handler handler, Refused refused = nullptr);
  ~HttpServer();

  void start();           // accepts from here on
  int port() const;       // the bound one
  // No new connections; idle ones close now, the others after the reply that runs. `drained` is called once none is left.
  void drain(std::function<void()> drained);
  void cancel_all();      // what runs ends with an error that its client can read, and counts as gone
  void close_all();       // at once: what runs counts as gone
  int num_connections() const;
  std::size_t backlog_bytes() const;  // written by the handler, not yet taken by clients

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace couplet::server
