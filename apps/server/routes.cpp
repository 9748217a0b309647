#include "server/routes.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <vector>

#include "server/api_error.h"
#include "server/generation.h"
#include "server/metrics.h"
#include "server/openapi.h"
#include "server/served_model.h"
#include "server/text_routes.h"

extern "C" const char couplet_page[], couplet_page_end[];

namespace couplet::server {
namespace {

constexpr std::string_view kModelPath = "/v1/models/";

// What other servers have and this version has not: known, so that a client is told why.
constexpr std::string_view kUnsupportedPaths[] = {"/v1/responses",   "/v1/messages",         "/v1/embeddings", "/embeddings",
                                                  "/v1/rerank",      "/v1/audio/speech",     "/v1/audio/transcriptions",
                                                  "/v1/moderations", "/v1/images/generations", "/completion",   "/infill",
                                                  "/api/chat",       "/api/generate",        "/api/tags"};

using Exchanged = std::shared_ptr<Exchange>;
using AskOfText = Json (*)(const Json& body, const ServedModel& model);

HttpReply json_reply(const Json& json) { return {.body = dump(json)}; }

class Routes {
 public:
  explicit Routes(const RouteParts& parts) : service_(std::make_shared<Service>(parts)), openapi_(openapi_json(service_->model)) {}

  void handle(const Exchanged& exchange) {
    const HttpRequest& request = exchange->request();
    const std::string method = request.method == "HEAD" ? "GET" : request.method;
    std::string allowed;
    for (const Route& route : routes()) {
      if (!matches(route.path, request.path)) continue;
      if (route.method == method) return (this->*route.answer)(exchange);
      allowed += (allowed.empty() ? "" : ", ") + std::string(route.method == "GET" ? "GET, HEAD" : route.method);
    }
    reply(*service_, exchange, allowed.empty() ? unknown(request) : not_allowed(request, allowed));
  }

 private:
  struct Route {
    std::string_view method, path;
    void (Routes::*answer)(const Exchanged& exchange);
  };
  static const std::vector<Route>& routes() {
    static const std::vector<Route> kRoutes = {
        {"POST", "/v1/chat/completions", &Routes::chat},
        {"POST", "/v1/completions", &Routes::completion},
        {"GET", "/v1/models", &Routes::models},
        {"GET", kModelPath, &Routes::model},
        {"POST", "/tokenize", &Routes::about_text<tokenize>},
        {"POST", "/detokenize", &Routes::about_text<detokenize>},
        {"POST", "/apply-template", &Routes::about_text<apply_template>},
        {"GET", "/health", &Routes::health},
        {"GET", "/v1/health", &Routes::health},
        {"GET", "/metrics", &Routes::metrics},
        {"GET", "/version", &Routes::version},
        {"GET", "/openapi.json", &Routes::openapi},
        {"GET", "/", &Routes::page},
    };
    return kRoutes;
  }
  static bool matches(std::string_view route, std::string_view path) {
    return route == kModelPath ? path.starts_with(route) && path.size() > route.size() : path == route;
  }

  static void reply(const Service& service, const Exchanged& exchange, HttpReply reply) {
    // One name for all paths that are none, so that strangers can't make labels.
    const std::string& path = exchange->request().path;
    const bool is_known = std::ranges::any_of(routes(), [&](const Route& route) { return route.path == path; });
    RequestFigures figures;
    figures.route = is_known ? path : path.starts_with(kModelPath) ? "/v1/models/{id}" : "other";
    figures.status = reply.status;
    figures.outcome = reply.status < 400 ? "done" : "refused";
    service.metrics.observe_http(figures.route, figures.status);
    log_request(service.log, exchange->request(), figures, "");
    exchange->reply(std::move(reply));
  }

  static HttpReply unknown(const HttpRequest& request) {
    const std::string what = request.method + " " + shown(Json(request.path));
    if (std::ranges::find(kUnsupportedPaths, request.path) != std::end(kUnsupportedPaths))
      return error_reply(404, what + ": not supported in this version; expected a path of /openapi.json", "unsupported_endpoint");
    return error_reply(404, what + ": expected a path of /openapi.json, got an unknown one", "unknown_url");
  }
  static HttpReply not_allowed(const HttpRequest& request, const std::string& allowed) {
    HttpReply reply = error_reply(405, request.path + ": expected " + allowed + ", got " + request.method, "method_not_allowed");
    reply.headers.emplace_back("allow", allowed);
    return reply;
  }

  void chat(const Exchanged& exchange) { generate(service_, kChatProtocol, exchange); }
  void completion(const Exchanged& exchange) { generate(service_, kCompletionProtocol, exchange); }

  template <AskOfText ask>
  void about_text(const Exchanged& exchange) {
    boost::asio::post(service_->pool, [service = service_, exchange]() mutable {
      HttpReply answer;
      try {
        answer = json_reply(ask(parse_json(exchange->request().body), service->model));
      } catch (const ApiError& error) {
        answer = error.reply();
      } catch (const std::exception&) {
        answer = error_reply(500, "the request could not be read", "internal_error");
      }
      // Exchange and service go back to the io thread: they may not end on this one.
      boost::asio::io_context& io = service->io;
      boost::asio::post(io, [service = std::move(service), exchange = std::move(exchange), answer = std::move(answer)]() mutable {
        reply(*service, exchange, std::move(answer));
      });
    });
  }

  void models(const Exchanged& exchange) {
    reply(*service_, exchange, json_reply({{"object", "list"}, {"data", Json::array({service_->model.card()})}}));
  }
  void model(const Exchanged& exchange) {
    try {
      service_->model.require(exchange->request().path.substr(kModelPath.size()), "model");
      reply(*service_, exchange, json_reply(service_->model.card()));
    } catch (const ApiError& error) {
      reply(*service_, exchange, error.reply());
    }
  }
  void health(const Exchanged& exchange) { reply(*service_, exchange, json_reply({{"status", "ok"}})); }
  void metrics(const Exchanged& exchange) {
    reply(*service_, exchange, {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = service_->metrics.text()});
  }
  void version(const Exchanged& exchange) {
    reply(*service_, exchange, json_reply({{"version", COUPLET_VERSION},
                                {"numerics_version", service_->model.info.numerics_version},
                                {"kernels", service_->model.info.kernels},
                                {"system_fingerprint", service_->model.fingerprint}}));
  }
  void openapi(const Exchanged& exchange) { reply(*service_, exchange, {.body = openapi_}); }
  void page(const Exchanged& exchange) {
    // What may run on the page, the page itself says, by hashes that its build wrote.
    reply(*service_, exchange, {.content_type = "text/html; charset=utf-8",
                                .headers = {{"content-security-policy", "frame-ancestors 'none'"}},
                                .body = std::string(couplet_page, couplet_page_end)});
  }

  std::shared_ptr<Service> service_;
  std::string openapi_;
};

}  // namespace

Handler make_routes(const RouteParts& parts) {
  return [routes = std::make_shared<Routes>(parts)](const Exchanged& exchange) { routes->handle(exchange); };
}

}  // namespace couplet::server
