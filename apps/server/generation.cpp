#include "server/generation.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <ctime>
#include <random>
#include <utility>

#include "server/api_error.h"
#include "server/chat_request.h"
#include "server/completion_request.h"
#include "server/reply_figures.h"

namespace couplet::server {
namespace {

constexpr const char* kRetryAfterSeconds = "1";

std::string random_hex() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}", random(), random(), random());
}

const char* finish_reason(StopReason stop) {
  return stop == StopReason::end_of_turn || stop == StopReason::stop_text ? "stop" : "length";
}

bool is_failure(StopReason stop) {
  return stop == StopReason::numeric_error || stop == StopReason::cache_range || stop == StopReason::cancelled;
}

ApiError failure(StopReason stop) {
  if (stop == StopReason::cancelled) return ApiError("the server is shutting down", "", "shutting_down", 503);
  if (stop == StopReason::cache_range)
    return ApiError("a key or value was beyond what the cache's format holds: expected --cache-format f16 for this model", "",
                    "cache_range", 500);
  return ApiError("a value of the model was not finite: there is no reply to give", "", "numeric_error", 500);
}

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  Generation(std::shared_ptr<Service> service, const Protocol& protocol, std::shared_ptr<Exchange> exchange)
      : service_(std::move(service)), protocol_(protocol), exchange_(std::move(exchange)), timer_(service_->io) {}

  void start() {
    exchange_->on_gone([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->leave();
    });
    boost::asio::post(service_->pool, [self = shared_from_this()]() mutable {
      self->read();
      boost::asio::io_context& io = self->service_->io;
      boost::asio::post(io, [self = std::move(self)] { self->submit(); });
    });
  }

 private:
  struct Choice {
    Piece pending;  // what its client has not been told
    bool opened = false;
    std::string finish_reason = "";
  };

  // On the pool.
  void read() {
    try {
      plan_ = protocol_.read(parse_json(exchange_->request().body), service_->model);
    } catch (const ApiError& error) {
      refusal_ = error;
    } catch (const std::exception&) {
      refusal_ = ApiError("the request could not be read", "", "internal_error", 500);
    }
  }

  void submit() {
    if (is_over_) return;
    if (refusal_) return refuse(*refusal_);
    begin();
    figures_.note_submitted();
    GroupOptions options{.wants_records = plan_.reply.ledger};
    const auto submitted = service_->host.submit(
        std::move(plan_.requests), [self = shared_from_this()](const StepPart& part) { self->take(part); }, options);
    if (submitted.id == 0) return refuse(refusal_of(submitted.refusal));
    group_ = submitted.id;
    if (!plan_.reply.stream) return;
    HttpReply head;
    head.content_type = "text/event-stream; charset=utf-8";
    head.headers = {{"x-accel-buffering", "no"}};
    exchange_->begin_stream(std::move(head));
    last_write_ = Clock::now();
    keep_alive();
  }

  // All that the parts of steps will need.
  void begin() {
    const Tokenizer& tokenizer = service_->model.tokenizer();
    form_ = protocol_.form(tokenizer, plan_.reply);
    id_ = form_->id_prefix() + random_hex();
    created_ = static_cast<std::int64_t>(std::time(nullptr));
    const std::string& client = exchange_->request().client;
    for (Request& request : plan_.requests) request.client = XXH3_64bits(client.data(), client.size());
    const StopOptions& stop = plan_.requests.front().stop;
    ends_ = stop.ids;
    if (!stop.ignore_end) ends_.insert(ends_.end(), tokenizer.end_ids().begin(), tokenizer.end_ids().end());
    choices_.resize(plan_.requests.size());
    num_running_ = choices_.size();
    std::vector<int> prompt_tokens;
    for (const Prompt& prompt : plan_.prompts) prompt_tokens.push_back(static_cast<int>(prompt.ids.size()));
    figures_.begin(std::move(prompt_tokens), plan_.num_choices);
  }

  static ApiError refusal_of(const SubmitResult& refusal) {
    if (refusal.kind == Refusal::queue_full) return ApiError(refusal.refusal, "", "queue_full", 429);
    return ApiError(refusal.refusal, "", refusal.kind == Refusal::too_long ? "context_length_exceeded" : "invalid_value");
  }

  void take(const StepPart& part) {
    if (is_over_) return;
    Choice& choice = choices_[static_cast<std::size_t>(part.choice)];
    const bool counts = part.token >= 0 && std::find(ends_.begin(), ends_.end(), part.token) == ends_.end();
    figures_.note(part, counts);
    if (is_failure(part.stop)) return fail(failure(part.stop));
    if (plan_.reply.ledger && part.step.num_rows > 0)
      choice.pending.ledger.push_back(ledger_entry(part, service_->model));
    choice.pending.text += part.text;
    if (counts) choice.pending.tokens.push_back(part.step.choice);
    const bool ends = part.stop != StopReason::none;
    if (ends) {
      --num_running_;
      choice.finish_reason = finish_reason(part.stop);
    }
    if (plan_.reply.stream) tell(choice, part);
    if (num_running_ == 0 && !is_over_) finish();  // a write may find that the client is gone
  }

  // Tells a stream what is new of a choice. What is certain but shows no text waits for the next text.
  void tell(Choice& choice, const StepPart& part) {
    const bool ends = part.stop != StopReason::none;
    const bool progresses = plan_.reply.progress && part.step.stage == Stage::prefill && part.step.num_rows > 0;
    if (part.token >= 0 || ends || progresses || plan_.reply.ledger) open(choice, part.choice);
    if (progresses) write_chunk(form_->chunk(part.choice, {}), {{"prompt_progress", figures_.progress(part)}});
    if (!choice.pending.text.empty() || (plan_.reply.ledger && !ends)) {
      write_chunk(form_->chunk(part.choice, choice.pending));
      choice.pending = {};
    }
    if (!ends) return;
    choice.pending.finish_reason = choice.finish_reason;
    Json extras = Json::object();
    if (plan_.reply.timings && num_running_ == 0) extras["timings"] = figures_.timings();
    write_chunk(form_->chunk(part.choice, choice.pending), std::move(extras));
    choice.pending = {};
  }

  void open(Choice& choice, int index) {
    if (std::exchange(choice.opened, true)) return;
    Json opening = form_->opening(index, before(index));
    Json extras = Json::object();
    if (plan_.reply.token_ids && protocol_.tells_prompt_once) extras["prompt_token_ids"] = plan_.prompts[0].ids;
    if (!opening.is_null()) write_chunk(std::move(opening), std::move(extras));
  }

  Before before(int index) const {
    const auto i = static_cast<std::size_t>(index);
    return {plan_.prompts[i / static_cast<std::size_t>(plan_.num_choices)],
            plan_.prompt_logprobs.empty() ? nullptr : plan_.prompt_logprobs[i].get()};
  }

  void finish() {
    if (plan_.reply.stream) {
      if (plan_.reply.include_usage) {
        Json chunk = envelope(Json::array(), true);
        chunk["usage"] = figures_.usage();
        write_event(chunk);
      }
      exchange_->write("data: [DONE]\n\n");
      exchange_->end_stream();
    } else {
      Json choices = Json::array();
      for (std::size_t i = 0; i < choices_.size(); ++i) {
        const int index = static_cast<int>(i);
        choices_[i].pending.finish_reason = choices_[i].finish_reason;
        choices.push_back(form_->whole(index, before(index), choices_[i].pending));
      }
      Json reply = envelope(std::move(choices), false);
      reply["usage"] = figures_.usage();
      if (plan_.reply.timings) reply["timings"] = figures_.timings();
      if (plan_.reply.token_ids && protocol_.tells_prompt_once) reply["prompt_token_ids"] = plan_.prompts[0].ids;
      exchange_->reply({.body = dump(reply)});
    }
    account(200, choices_[0].finish_reason);
  }

  void fail(const ApiError& error) {
    service_->host.cancel(group_);
    if (plan_.reply.stream) {
      exchange_->write("data: " + error.reply().body + "\n\ndata: [DONE]\n\n");
      exchange_->end_stream();
    } else {
      exchange_->reply(error.reply());
    }
    account(error.status(), "error", error.code());
  }

  void refuse(const ApiError& error) {
    HttpReply reply = error.reply();
    if (error.status() == 429) reply.headers.emplace_back("retry-after", kRetryAfterSeconds);
    exchange_->reply(std::move(reply));
    account(error.status(), error.status() >= 500 ? "error" : "refused", error.param().empty() ? error.code() : error.param());
  }

  void leave() {
    if (is_over_) return;
    if (group_ != 0) service_->host.cancel(group_);
    account(499, "cancelled");
  }

  void account(int status, const std::string& outcome, const std::string& problem = "") {
    if (std::exchange(is_over_, true)) return;
    timer_.cancel();
    RequestFigures figures = figures_.request_figures();
    figures.route = exchange_->request().path;
    figures.status = status;
    figures.outcome = outcome;
    service_->metrics.observe_request(figures);
    service_->metrics.observe_http(figures.route, status);
    log_request(service_->log, exchange_->request(), figures, problem);
  }

  Json envelope(Json choices, bool is_chunk) const {
    Json json = {{"id", id_}, {"object", form_->object(is_chunk)}, {"created", created_}, {"model", service_->model.name}};
    json["choices"] = std::move(choices);
    if (!plan_.reply.service_tier.empty()) json["service_tier"] = "default";  // there is one
    json["system_fingerprint"] = service_->model.fingerprint;
    return json;
  }

  void write_chunk(Json choice, Json extras = Json::object()) {
    Json chunk = envelope(Json::array({std::move(choice)}), true);
    if (plan_.reply.include_usage) chunk["usage"] = nullptr;
    if (plan_.reply.timings_per_token && !extras.contains("timings")) extras["timings"] = figures_.timings();
    chunk.update(extras);
    write_event(chunk);
  }

  void write_event(const Json& json) {
    exchange_->write("data: " + dump(json) + "\n\n");
    last_write_ = Clock::now();
  }

  // A comment where nothing else was sent for a while: whoever lies between client and server sees life.
  void keep_alive() {
    const auto interval = service_->options.keep_alive_interval;
    if (interval.count() <= 0) return;
    timer_.expires_at(last_write_ + interval);
    timer_.async_wait([weak = weak_from_this(), interval](const boost::system::error_code& error) {
      const auto self = weak.lock();
      if (error || !self || self->is_over_) return;
      if (Clock::now() - self->last_write_ >= interval) {
        self->exchange_->write(": keep-alive\n\n");
        self->last_write_ = Clock::now();
      }
      self->keep_alive();
    });
  }

  std::shared_ptr<Service> service_;
  const Protocol& protocol_;
  std::shared_ptr<Exchange> exchange_;
  boost::asio::steady_timer timer_;
  GenerationPlan plan_;
  std::optional<ApiError> refusal_;
  std::unique_ptr<ReplyForm> form_;
  std::string id_;
  std::int64_t created_ = 0;
  std::vector<TokenId> ends_;  // those that end a choice and are no part of it
  std::vector<Choice> choices_;
  std::size_t num_running_ = 0;
  ReplyFigures figures_;
  GroupId group_ = 0;
  bool is_over_ = false;
  Clock::time_point last_write_{};
};

}  // namespace

const Protocol kChatProtocol = {read_chat_request, ReplyForm::chat, true};
const Protocol kCompletionProtocol = {read_completion_request, ReplyForm::completion, false};

void log_request(RequestLog& log, const HttpRequest& request, const RequestFigures& figures, const std::string& problem) {
  log.write({request.method, request.id, request.client, parse_traceparent(request.header("traceparent")), figures, problem});
}

void generate(std::shared_ptr<Service> service, const Protocol& protocol, std::shared_ptr<Exchange> exchange) {
  std::make_shared<Generation>(std::move(service), protocol, std::move(exchange))->start();
}

}  // namespace couplet::server
