#pragma once
// The whole server: an engine's thread, an io thread, and what lies between. SIGTERM and SIGINT drain it.

#include <functional>
#include <string>

#include "couplet/engine.h"
#include "server/options.h"

namespace couplet::server {

// Throws what serve() would throw for these options now: what contradicts each other, an address or certificate that can't
// be used.
void check(const ServerOptions& options);

// Serves until a signal has drained it; the exit status. `ready` is told the address ("http://127.0.0.1:8080") once
// requests are taken. Throws Error where the address or the options are no good.
int serve(Engine& engine, const ServerOptions& options, const std::function<void(const std::string& address)>& ready);

}  // namespace couplet::server
