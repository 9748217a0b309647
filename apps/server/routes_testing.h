#pragma once
// What tests of the routes share: a tiny model with a chat template behind a real engine, and an Exchange without sockets.

#include <fcntl.h>
#include <gtest/gtest.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/engine_host.h"
#include "server/json.h"
#include "server/metrics.h"
#include "server/request_log.h"
#include "server/routes.h"
#include "tests/property/tiny_model.h"

namespace couplet::server {

class FakeExchange : public Exchange {
 public:
  explicit FakeExchange(HttpRequest request) : request_(std::move(request)) {}
  const HttpRequest& request() const override { return request_; }
  void reply(HttpReply reply) override {
    EXPECT_FALSE(is_done) << "a second reply";
    head = std::move(reply);
    is_done = true;
  }
  void begin_stream(HttpReply reply) override {
    EXPECT_FALSE(is_done || is_stream);
    head = std::move(reply);
    is_stream = true;
  }
  void write(std::string_view bytes) override {
    if (is_gone) return;
    EXPECT_TRUE(is_stream && !is_done);
    stream += bytes;
    if (on_write) on_write();
  }
  void end_stream() override { is_done = true; }
  void on_gone(std::function<void()> call) override { gone_call_ = std::move(call); }
  bool gone() const override { return is_gone; }
  void leave() {
    is_gone = is_done = true;
    if (const auto call = std::exchange(gone_call_, nullptr)) call();
  }

  HttpReply head;
  std::string stream;
  bool is_stream = false, is_done = false, is_gone = false;
  std::function<void()> on_write;

 private:
  HttpRequest request_;
  std::function<void()> gone_call_;
};

// The JSON of each event of a stream, which must end with [DONE]; comments are skipped.
inline std::vector<Json> events_of(const std::string& stream) {
  std::vector<Json> events;
  bool is_done = false;
  for (std::size_t begin = 0; begin < stream.size();) {
    const std::size_t end = stream.find("\n\n", begin);
    if (end == std::string::npos) {
      ADD_FAILURE() << "an event without its end";
      break;
    }
    const std::string event = stream.substr(begin, end - begin);
    begin = end + 2;
    EXPECT_FALSE(is_done) << "after [DONE]: " << event;
    if (event.starts_with(":")) continue;
    EXPECT_TRUE(event.starts_with("data: ")) << event;
    EXPECT_EQ(event.find('\n'), std::string::npos);
    if (event == "data: [DONE]") is_done = true;
    else events.push_back(Json::parse(event.substr(6)));
  }
  EXPECT_TRUE(is_done);
  return events;
}

class RoutesTest : public ::testing::Test {
 protected:
  static constexpr const char* kTemplate =
      "{% for m in messages %}{% if m.role == 'user' and loop.index0 > 0 and messages[loop.index0 - 1].role == 'user' %}"
      "{{ raise_exception('roles must alternate') }}{% endif %}[{{ m.role }}]{{ m.content }}\n{% endfor %}"
      "{% if tone is defined %}({{ tone }}){% endif %}{% if add_generation_prompt %}[assistant]{% endif %}";

  explicit RoutesTest(const char* chat_template = kTemplate, const testing::TinyModel& model = testing::tiny_llama(),
                      const EngineOptions& engine_options = {.num_threads = 1}) {
    ChatTemplate::set_worker_command(COUPLET_BINARY_DIR "/tests/couplet_template_worker", "template-worker");
    formats::GgufBuilder gguf = testing::TinyModelWriter(model).builder();
    if (chat_template != nullptr) gguf.add("tokenizer.chat_template", chat_template);
    gguf.add("general.name", "tiny");
    std::string pattern = (std::filesystem::temp_directory_path() / "couplet-routes-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    gguf.write(folder_ / "tiny.gguf");
    checkpoint_ = Checkpoint::open(folder_ / "tiny.gguf");
    engine_ = Engine::load(checkpoint_, engine_options);
    metrics_ = std::make_unique<Metrics>("tiny", engine_->info());
    log_ = std::make_unique<RequestLog>(false, open("/dev/null", O_WRONLY | O_CLOEXEC));
    start();
  }
  ~RoutesTest() override {
    handler_ = nullptr;
    host_.reset();
    std::filesystem::remove_all(folder_);
  }

  // (Again), with the options as they are now.
  void start() {
    handler_ = nullptr;
    host_ = std::make_unique<EngineHost>(*engine_, io_, *metrics_);
    handler_ = make_routes({*engine_, *host_, *metrics_, *log_, options_, io_});
  }

  std::shared_ptr<FakeExchange> send(const std::string& method, const std::string& path, std::string body = "") {
    HttpRequest request;
    request.method = method;
    request.path = path;
    request.body = std::move(body);
    request.id = "test";
    request.client = "test";
    auto exchange = std::make_shared<FakeExchange>(std::move(request));
    handler_(exchange);
    return exchange;
  }
  void run_until(const std::function<bool()>& is_done) {
    const auto work = boost::asio::make_work_guard(io_);
    io_.restart();
    while (!is_done()) io_.run_one();
  }
  std::shared_ptr<FakeExchange> ask(const std::string& method, const std::string& path, std::string body = "") {
    const auto exchange = send(method, path, std::move(body));
    run_until([&] { return exchange->is_done; });
    return exchange;
  }
  Json post(const std::string& path, const Json& body, int status = 200) {
    const auto exchange = ask("POST", path, body.dump());
    EXPECT_EQ(exchange->head.status, status) << exchange->head.body;
    return Json::parse(exchange->head.body);
  }
  std::vector<Json> stream(const std::string& path, Json body) {
    body["stream"] = true;
    const auto exchange = ask("POST", path, body.dump());
    EXPECT_TRUE(exchange->is_stream) << exchange->head.body;
    EXPECT_EQ(exchange->head.content_type, "text/event-stream; charset=utf-8");
    return events_of(exchange->stream);
  }
  static Json chat_body(const std::string& text) {
    return {{"model", "tiny"}, {"messages", Json::array({{{"role", "user"}, {"content", text}}})}, {"max_tokens", 12}};
  }

  std::filesystem::path folder_;
  boost::asio::io_context io_;
  ServerOptions options_;
  std::shared_ptr<const Checkpoint> checkpoint_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<RequestLog> log_;
  std::unique_ptr<EngineHost> host_;
  Handler handler_;
};

}  // namespace couplet::server
