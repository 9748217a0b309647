#include "server/http_server.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <unordered_set>
#include <utility>

#include "couplet/error.h"
#include "server/connection.h"

namespace couplet::server {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Code = boost::system::error_code;

constexpr std::size_t kSurplusConnections = 32;  // over the limit, told so; more wait in the system's queue
constexpr int kSendBufferBytes = 256 << 10;      // the system's own, of a client that does not read
constexpr std::chrono::milliseconds kAcceptPause{100};

Tcp::endpoint find_endpoint(asio::io_context& io, const ServerOptions& options) {
  const auto port = static_cast<unsigned short>(options.port);
  Code code;
  if (const auto address = asio::ip::make_address(options.host, code); !code) return {address, port};
  const auto found = Tcp::resolver(io).resolve(options.host, "", code);
  if (code || found.empty())
    throw Error(ErrorKind::io, fmt::format("[server] --host: expected an address of this machine, got \"{}\"", options.host));
  for (const auto& entry : found)
    if (entry.endpoint().address().is_v4()) return {entry.endpoint().address(), port};
  return {found.begin()->endpoint().address(), port};
}

void check_options(const ServerOptions& options, bool is_loopback) {
  if (options.tls_certificate.empty() != options.tls_key.empty())
    throw Error(ErrorKind::usage, fmt::format("[server] TLS: expected --tls-cert and --tls-key, got {} alone",
                                              options.tls_key.empty() ? "--tls-cert" : "--tls-key"));
  if (!is_loopback && options.api_keys.empty())
    throw Error(ErrorKind::usage, fmt::format("[server] --host {}: expected --api-key-file with it, since others than this "
                                              "machine can ask there, got none", options.host));
}

}  // namespace

struct HttpServer::State : std::enable_shared_from_this<HttpServer::State> {
  State(asio::io_context& io, const ServerOptions& options, Handler handler, Refused refused, Tcp::endpoint endpoint)
      : hub(std::make_shared<ConnectionHub>(ConnectionHub{.io = io,
                                                          .options = options,
                                                          .access = Access(options, endpoint.address().is_loopback()),
                                                          .handler = std::move(handler),
                                                          .on_closed = nullptr,
                                                          .on_refused = std::move(refused)})),
        acceptor(io),
        retry(io) {
    check_options(options, endpoint.address().is_loopback());
    if (!options.tls_key.empty()) tls = tls_context(options.tls_certificate, options.tls_key);
    bind(endpoint);
  }

  void bind(const Tcp::endpoint& endpoint) {
    Code code;
    acceptor.open(endpoint.protocol(), code);
    if (!code) acceptor.set_option(Tcp::acceptor::reuse_address(true), code);
    if (!code && endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(false), code);
    if (!code) acceptor.bind(endpoint, code);
    if (!code) acceptor.listen(asio::socket_base::max_listen_connections, code);
    if (code)
      throw Error(ErrorKind::io, fmt::format("[server] {}:{}: {}", hub->options.host, hub->options.port, code.message()));
    port = acceptor.local_endpoint().port();
  }

  void accept() {
    const auto limit = static_cast<std::size_t>(hub->options.max_connections) + kSurplusConnections;
    is_accepting = acceptor.is_open() && connections.size() < limit;
    if (!is_accepting) return;
    acceptor.async_accept([self = shared_from_this()](Code code, Tcp::socket socket) { self->on_accept(code, std::move(socket)); });
  }

  void on_accept(Code code, Tcp::socket socket) {
    if (!acceptor.is_open()) return;
    if (!code) {
      try {
        add(std::move(socket));
      } catch (const std::exception&) {  // no memory for one more
      }
      return accept();
    }
    // No file descriptors, mostly: asking again at once would spin until one is free.
    retry.expires_after(kAcceptPause);
    retry.async_wait([self = shared_from_this()](Code stopped) {
      if (!stopped) self->accept();
    });
  }

  void add(Tcp::socket socket) {
    Code code;
    const Tcp::endpoint peer = socket.remote_endpoint(code);
    if (code) return;  // it left already
    socket.set_option(Tcp::no_delay(true), code);
    socket.set_option(asio::socket_base::keep_alive(true), code);
    socket.set_option(asio::socket_base::send_buffer_size(kSendBufferBytes), code);
    const bool is_surplus = connections.size() >= static_cast<std::size_t>(hub->options.max_connections);
    auto stream = tls ? tls_stream(std::move(socket), *tls) : plain_stream(std::move(socket));
    const auto connection =
        std::make_shared<Connection>(hub, std::move(stream), peer.address().to_string(), is_surplus);
    connections.insert(connection);
    connection->start();
  }

  void on_closed(const std::shared_ptr<Connection>& connection) {
    connections.erase(connection);
    if (!is_accepting) accept();
    notify_drained();
  }

  void notify_drained() {
    if (!drained || !connections.empty()) return;
    asio::post(hub->io, std::exchange(drained, nullptr));
  }

  // Of what is there now: the calls change the set.
  void for_each(void (Connection::*member)()) {
    const std::vector<std::shared_ptr<Connection>> all(connections.begin(), connections.end());
    for (const auto& connection : all) ((*connection).*member)();
  }

  void stop_accepting() {
    Code ignored;
    acceptor.close(ignored);
    retry.cancel();
  }

  std::shared_ptr<ConnectionHub> hub;
  std::unique_ptr<asio::ssl::context> tls;
  Tcp::acceptor acceptor;
  int port = 0;
  asio::steady_timer retry;
  bool is_accepting = false;
  std::unordered_set<std::shared_ptr<Connection>> connections;
  std::function<void()> drained;
};

HttpServer::HttpServer(asio::io_context& io, const ServerOptions& options, Handler handler, Refused refused)
    : state_(std::make_shared<State>(io, options, std::move(handler), std::move(refused), find_endpoint(io, options))) {
  state_->hub->on_closed = [state = std::weak_ptr(state_)](const std::shared_ptr<Connection>& connection) {
    if (const auto self = state.lock()) self->on_closed(connection);
  };
}

HttpServer::~HttpServer() { close_all(); }

void HttpServer::start() { state_->accept(); }

int HttpServer::port() const { return state_->port; }

void HttpServer::drain(std::function<void()> drained) {
  state_->hub->draining = true;
  state_->stop_accepting();
  state_->for_each(&Connection::drain);
  state_->drained = std::move(drained);
  state_->notify_drained();
}

void HttpServer::cancel_all() { state_->for_each(&Connection::cancel); }

void HttpServer::close_all() {
  state_->stop_accepting();
  state_->for_each(&Connection::drop);
}

int HttpServer::num_connections() const { return static_cast<int>(state_->connections.size()); }
std::size_t HttpServer::backlog_bytes() const { return state_->hub->backlog_bytes; }

}  // namespace couplet::server
