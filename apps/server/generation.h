#pragma once
// One request for text on its way: read on the pool of threads, handed to the engine, told to its client piece by piece or
// whole, and accounted for. Lives on the io thread, held by whatever will call it next.

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>

#include "server/engine_host.h"
#include "server/exchange.h"
#include "server/generation_plan.h"
#include "server/metrics.h"
#include "server/request_log.h"
#include "server/routes.h"
#include "server/reply_form.h"

namespace couplet::server {

// What the routes and all generations stand on, held by each of them; it may not end on its own pool.
struct Service {
  explicit Service(const RouteParts& parts)
      : model(parts.engine, parts.options, parts.machine), host(parts.host), metrics(parts.metrics), log(parts.log), options(parts.options), io(parts.io) {}
  ~Service() { pool.join(); }

  // Reading requests is short work beside a generation; the second thread lets a small one pass a large one.
  static constexpr std::size_t kNumThreads = 2;

  ServedModel model;
  EngineHost& host;
  Metrics& metrics;
  RequestLog& log;
  const ServerOptions& options;
  boost::asio::io_context& io;
  boost::asio::thread_pool pool{kNumThreads};
};

// A protocol: how a body is read and a choice is told.
struct Protocol {
  GenerationPlan (*read)(const Json& body, const ServedModel& model);
  std::unique_ptr<ReplyForm> (*form)(const Tokenizer& tokenizer, const ReplyOptions& options);
  bool tells_prompt_once;  // return_token_ids: the prompt's stand beside the choices, not in them
};
extern const Protocol kChatProtocol, kCompletionProtocol;

// A line of the log; `problem`: the code or the field of a refusal.
void log_request(RequestLog& log, const HttpRequest& request, const RequestFigures& figures, const std::string& problem);

void generate(std::shared_ptr<Service> service, const Protocol& protocol, std::shared_ptr<Exchange> exchange);

}  // namespace couplet::server
