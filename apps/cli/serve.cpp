// couplet serve: the HTTP server. Its options become EngineOptions and ServerOptions; the rest is apps/server.

#include "server/serve.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <climits>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "catalogue.h"
#include "commands.h"
#include "generate.h"
#include "model_name.h"
#include "session.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

using server::ServerOptions;

constexpr int kMaxSeconds = 1'000'000;
constexpr std::size_t kMaxKeyFileBytes = std::size_t{1} << 20;

struct ServeOptions {
  CommonOptions common;
  ServerOptions server;
  std::string api_key_file;
};

CommandLine::Take seconds_into(const std::string& what, std::chrono::milliseconds& target) {
  return [=, &target](const std::string& text) {
    target = std::chrono::milliseconds(static_cast<std::int64_t>(parse_number(what, text, 0, kMaxSeconds) * 1000));
  };
}

CommandLine::Take text_into(std::string& target) {
  return [&target](const std::string& text) { target = text; };
}

CommandLine::Take append_to(std::vector<std::string>& targets) {
  return [&targets](const std::string& text) { targets.push_back(text); };
}

void add_access(CommandLine& line, ServeOptions& options) {
  ServerOptions& server = options.server;
  line.option("--host", "ADDRESS", "Where to listen; default: 127.0.0.1, this machine alone", text_into(server.host));
  line.integer("--port", server.port, 0, 65535, "Default: 8080; 0: any free one, which is printed");
  line.option("--api-key-file", "FILE", "One key a line; each opens everything. Needed for any --host but this machine's",
              text_into(options.api_key_file));
  line.option("--allowed-host", "NAME", "Another name that clients may call this server by (may be repeated)",
              append_to(server.allowed_hosts), true);
  line.option("--cors-origin", "ORIGIN", "Pages of this origin may ask, as https://example.com; *: all (may be repeated)",
              append_to(server.allowed_origins), true);
  line.option("--tls-cert", "FILE", "PEM certificates, the server's own first: HTTPS", text_into(server.tls_certificate));
  line.option("--tls-key", "FILE", "Its key, PEM, not encrypted", text_into(server.tls_key));
  line.option("--model-name", "TEXT", "What clients call the model; default: as MODEL says", text_into(server.model_name));
}

void add_limits(CommandLine& line, ServeOptions& options) {
  EngineOptions& engine = options.common.engine;
  ServerOptions& server = options.server;
  line.integer("--max-sequences", engine.max_sequences, 1, 4096, "Replies made at once; default: 16");
  line.integer("--max-queue", server.max_queue, 1, INT_MAX, "Requests that wait for their turn; more get 429; default: 256");
  line.option("--itl-target-ms", "MS", "What a step may take while replies are made; default: twice what it takes without prompts",
              [&engine](const std::string& text) { engine.itl_target_ms = parse_number("--itl-target-ms", text, 0, 1e6); });
  line.integer("--max-prompt-tokens", server.max_prompt_tokens, 1, INT_MAX, "Of a request; default: what the context holds");
  line.integer("--max-output-tokens", server.max_output_tokens, 1, INT_MAX, "Of a reply; default: what the context holds");
  line.integer("--max-choices", server.max_choices, 1, 4096, "Replies to one request; default: 16");
  line.integer("--max-connections", server.max_connections, 1, 1'000'000, "Clients at once; more get 503; default: 1024");
  line.option("--max-body-bytes", "N", "Of a request; default: 8388608", [&server](const std::string& text) {
    server.max_body_bytes = static_cast<std::size_t>(parse_integer("--max-body-bytes", text, 1, std::int64_t{1} << 30));
  });
  line.option("--request-timeout", "SECONDS", "From a request to the end of its reply; default: none",
              seconds_into("--request-timeout", server.request_timeout));
  line.option("--drain-timeout", "SECONDS", "What replies may still take after SIGTERM or Ctrl-C; default: 30",
              seconds_into("--drain-timeout", server.drain_timeout));
  line.flag("--log-json", server.log_json, "A JSON line for each request, not text");
}

// One key a line; blank lines and those that begin with # are none.
std::vector<std::string> read_keys(const std::string& path) {
  struct stat status {};
  std::ifstream file(path, std::ios::binary);
  if (!file || ::stat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode))
    throw Error(ErrorKind::not_found, fmt::format("[serve] --api-key-file: expected a readable file, got {}", path));
  if ((status.st_mode & (S_IRGRP | S_IROTH)) != 0 && S_ISREG(status.st_mode))
    note(fmt::format("others on this machine can read the API keys in {} (chmod 600 hides them)", visible(path)));
  std::vector<std::string> keys;
  std::size_t num_bytes = 0;
  for (std::string line; std::getline(file, line);) {
    num_bytes += line.size() + 1;
    if (num_bytes > kMaxKeyFileBytes)
      throw Error(ErrorKind::format, fmt::format("[serve] --api-key-file: expected at most 1 MiB, {} has more", path));
    const std::size_t end = line.find_last_not_of(" \t\r") + 1;
    line.resize(end);
    if (!line.empty() && line[0] != '#') keys.push_back(line);
  }
  if (keys.empty()) throw Error(ErrorKind::format, fmt::format("[serve] --api-key-file: expected a key a line, {} has none", path));
  return keys;
}

std::string model_name(const std::string& model) {
  if (find_in_catalogue(model) != nullptr || parse_remote_name(model)) return model;
  const std::filesystem::path path(model);
  const std::string name = (path.filename().empty() ? path.parent_path() : path).filename().string();
  return name.ends_with(".gguf") ? name.substr(0, name.size() - 5) : name;
}

}  // namespace

int serve_command(Arguments arguments) {
  ServeOptions options;
  CommandLine line("serve", "Answers requests over HTTP, as OpenAI's API does.");
  options.common.add_to(line);
  add_access(line, options);
  add_limits(line, options);
  if (!line.parse(arguments)) return 0;
  if (options.common.quiet) set_quiet();
  if (!options.api_key_file.empty()) options.server.api_keys = read_keys(options.api_key_file);
  if (options.server.model_name.empty()) options.server.model_name = model_name(options.common.model);
  options.common.engine.max_queue = options.server.max_queue;
  server::check(options.server);  // before a large model is read
  const auto engine = load_engine(open_model(options.common), options.common.engine);
  return server::serve(*engine, options.server, [&](const std::string& address) {
    print(options.common.json ? dump_line({{"address", address}, {"model", options.server.model_name}})
                              : fmt::format("serving {} on {}\n", visible(options.server.model_name), address));
    flush();
  });
}

}  // namespace couplet::cli
