#include "server/serve.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <exception>

#include "couplet/error.h"
#include "server/engine_host.h"
#include "server/http_server.h"
#include "server/metrics.h"
#include "server/request_log.h"
#include "server/routes.h"

namespace couplet::server {
namespace {

namespace asio = boost::asio;
using Code = boost::system::error_code;

constexpr std::chrono::seconds kLastWords{2};  // for errors to reach the clients whose replies are cut
constexpr rlim_t kOwnFiles = 64;               // beside connections: models, logs, libraries

// Each connection is a file; where the system allows fewer than it could, it is asked for more.
void allow_connections(int num_connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = static_cast<rlim_t>(num_connections) + kOwnFiles;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

std::string address_of(const ServerOptions& options, int port) {
  const bool is_ipv6 = options.host.find(':') != std::string::npos;
  return fmt::format("{}://{}:{}", options.tls_key.empty() ? "http" : "https",
                     is_ipv6 ? "[" + options.host + "]" : options.host, port);
}

// The first SIGTERM or SIGINT: nothing new, what runs may finish, for a while. The second: the end, at once.
class Shutdown {
 public:
  Shutdown(asio::io_context& io, HttpServer& http, std::chrono::milliseconds patience)
      : io_(io), http_(http), patience_(patience), signals_(io, SIGTERM), timer_(io) {
    if (!is_ignored(SIGINT)) signals_.add(SIGINT);  // as nohup leaves it
    wait();
  }

 private:
  void wait() {
    signals_.async_wait([this](Code code, int signal) {
      if (code) return;
      if (is_draining_) ::_exit(128 + signal);
      is_draining_ = true;
      wait();
      http_.drain([this] { io_.stop(); });
      after(patience_, [this] {
        http_.cancel_all();
        after(kLastWords, [this] { http_.close_all(); });
      });
    });
  }
  template <class Call>
  void after(std::chrono::milliseconds time, Call call) {
    timer_.expires_after(time);
    timer_.async_wait([call](Code code) {
      if (!code) call();
    });
  }

  asio::io_context& io_;
  HttpServer& http_;
  std::chrono::milliseconds patience_;
  asio::signal_set signals_;
  asio::steady_timer timer_;
  bool is_draining_ = false;
};

// What is thrown out of a callback, for want of memory say, ends that call alone.
void run(asio::io_context& io) {
  while (!io.stopped()) {
    try {
      io.run();
    } catch (const std::exception&) {
    }
  }
}

}  // namespace

void check(const ServerOptions& options) {
  asio::io_context io;
  const HttpServer bound(io, options, nullptr);
}

int serve(Engine& engine, const ServerOptions& options, const std::function<void(const std::string& address)>& ready) {
  allow_connections(options.max_connections);
  asio::io_context io{1};
  Metrics metrics(options.model_name, engine.info());
  RequestLog log(options.log_json);
  EngineHost host(engine, io, metrics);
  const EngineInfo& info = engine.info();
  const RouteParts parts{.engine = engine, .host = host, .metrics = metrics, .log = log, .options = options, .io = io,
                         .machine = measure_peaks(info.kernels, info.num_threads, info.weights_bytes)};
  {
    HttpServer http(io, options, make_routes(parts), [&](const HttpRequest& request, int status) {
      RequestFigures figures;
      figures.route = "none";
      figures.status = status;
      figures.outcome = "refused";
      metrics.observe_http(figures.route, status);
      log.write({request.method, request.id, request.client, parse_traceparent(request.header("traceparent")), figures, ""});
    });
    Shutdown shutdown(io, http, options.drain_timeout);
    http.start();
    ready(address_of(options, http.port()));
    run(io);
  }
  io.restart();
  io.poll();  // what the routes' threads still had to tell, while those who hear it are there
  return 0;
}

}  // namespace couplet::server
