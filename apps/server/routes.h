#pragma once
// Every path that the server answers, as one Handler: OpenAI's completions and chat completions, models, tokenize and
// detokenize, health, metrics, version and openapi.json. What a request says is read on a small pool of threads, checked
// whole before it is queued, and answered on the io thread.

#include <boost/asio/io_context.hpp>

#include "couplet/engine.h"
#include "couplet/machine.h"
#include "server/exchange.h"
#include "server/options.h"

namespace couplet::server {

class EngineHost;
class Metrics;
class RequestLog;

// What the routes stand on; all of it outlives the Handler.
struct RouteParts {
  const Engine& engine;  // its info and checkpoint alone
  EngineHost& host;
  Metrics& metrics;
  RequestLog& log;
  const ServerOptions& options;
  boost::asio::io_context& io;
  MachinePeaks machine = {};  // what stages are held against; zero: not measured
};

// Called on the io thread alone. A pool of threads ends with the last that needs it: the Handler, or a request under way.
Handler make_routes(const RouteParts& parts);

}  // namespace couplet::server
