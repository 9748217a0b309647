#include "server/connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <exception>
#include <random>

#include "server/error_reply.h"
#include "server/reply_head.h"

namespace couplet::server {
namespace {

namespace asio = boost::asio;
using Stage = RequestReader::Stage;

constexpr std::size_t kMaxPipelinedBytes = std::size_t{64} << 10;  // kept while a reply runs
constexpr std::size_t kMaxBodiesAtOnce = 32;                       // full ones, in memory over all connections
constexpr std::chrono::seconds kLingerTime{2};  // a client that still sends can read why it was refused

bool is_good_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 && std::ranges::all_of(id, [](char c) { return c > 0x20 && c < 0x7f; });
}

bool has_no_body(int status) { return status == 204 || status == 304; }

HttpReply busy_reply(std::string_view message, std::string_view code) {
  HttpReply reply = error_reply(503, message, code);
  reply.headers.emplace_back("retry-after", "1");
  return reply;
}

}  // namespace

std::string ConnectionHub::draw_id() {
  static thread_local std::mt19937_64 draw{std::random_device{}()};
  return fmt::format("req_{:016x}{:016x}", draw(), draw());
}

// What the handler holds of a connection: one request of it. It may outlive both, and its last owner may be on any thread.
class ConnectionExchange : public Exchange {
 public:
  ConnectionExchange(std::shared_ptr<Connection> connection, std::uint64_t serial, HttpRequest request)
      : connection_(std::move(connection)), serial_(serial), request_(std::move(request)) {}
  ~ConnectionExchange() override {
    if (done_) return;
    asio::io_context& io = connection_->hub_->io;
    asio::post(io, [connection = std::move(connection_), serial = serial_] { connection->on_abandoned(serial); });
  }

  const HttpRequest& request() const override { return request_; }
  void reply(HttpReply reply) override {
    done_ = true;
    connection_->reply(serial_, std::move(reply));
  }
  void begin_stream(HttpReply head) override { connection_->begin_stream(serial_, std::move(head)); }
  void write(std::string_view bytes) override { connection_->write(serial_, bytes); }
  void end_stream() override {
    done_ = true;
    connection_->end_stream(serial_);
  }
  void on_gone(std::function<void()> call) override {
    if (!done_) connection_->on_gone(serial_, std::move(call));
  }
  bool gone() const override { return !done_ && connection_->is_gone(serial_); }

 private:
  std::shared_ptr<Connection> connection_;
  std::uint64_t serial_;
  HttpRequest request_;
  bool done_ = false;  // the reply was given whole
};

// A callback that keeps the connection, and ends it alone where something is thrown.
template <class... Values>
auto Connection::guarded(void (Connection::*member)(Values...)) {
  return [self = shared_from_this(), member](Values... values) {
    try {
      ((*self).*member)(values...);
    } catch (const std::exception&) {
      self->drop();
    }
  };
}

Connection::Connection(std::shared_ptr<ConnectionHub> hub, std::unique_ptr<Stream> stream, std::string peer, bool is_surplus)
    : hub_(std::move(hub)), stream_(std::move(stream)), peer_(std::move(peer)), is_surplus_(is_surplus), timer_(hub_->io) {
  deadlines_.fill(Clock::time_point::max());
}

void Connection::start() {
  set_deadline(kPhase, hub_->options.header_timeout);
  stream_->handshake(guarded(&Connection::on_handshake));
}

void Connection::on_handshake(Stream::Code code) {
  if (phase_ == Phase::closed) return;
  if (code) return drop();
  begin_request(hub_->options.header_timeout);
  read();
}

void Connection::drain() {
  const bool is_waiting = phase_ == Phase::idle && reader_->stage() == Stage::empty;
  if (is_waiting) return linger();
  if (phase_ == Phase::handshake) close();
}

void Connection::cancel() {
  if (phase_ == Phase::answer) return fail_answer(503, "[server] the server is shutting down", "shutting_down");
  if (phase_ != Phase::linger) drop();
}

// ---- reading ----

void Connection::read() {
  stream_->read_some(incoming_, guarded(&Connection::on_read));
}

void Connection::on_read(Stream::Code code, std::size_t count) {
  if (phase_ == Phase::closed) return;
  if (code) return on_input_end(code);
  if (phase_ != Phase::linger) {
    input_.append(incoming_.data(), count);
    if (phase_ == Phase::answer && input_.size() > kMaxPipelinedBytes) {
      input_.clear();
      keeps_alive_ = false;
    }
    process_input();
  }
  if (phase_ != Phase::closed) read();
}

void Connection::on_input_end(Stream::Code code) {
  input_ended_ = true;
  const bool is_orderly = code == asio::error::eof || code == asio::ssl::error::stream_truncated;
  if (phase_ != Phase::answer) return close();
  if (!is_orderly || answer_ != Answer::complete) drop();  // a reply that stands is still delivered
}

void Connection::begin_request(std::chrono::milliseconds timeout) {
  reader_.emplace(hub_->options.max_header_bytes, hub_->options.max_body_bytes);
  judged_ = false;
  id_ = hub_->draw_id();
  cors_headers_.clear();
  is_head_ = false;
  phase_ = Phase::idle;
  set_deadline(kPhase, timeout);
  process_input();
  if (input_ended_ && phase_ <= Phase::body) close();
}

void Connection::process_input() {
  while (phase_ <= Phase::body && !input_.empty()) {
    const std::size_t size = input_.size();
    const Stage before = reader_->stage(), stage = reader_->feed(input_);
    if (phase_ == Phase::idle && stage != Stage::empty) {
      phase_ = Phase::head;
      const bool is_first = serial_ == 1;  // its time runs from the start of the connection
      if (!is_first) set_deadline(kPhase, hub_->options.header_timeout);
    }
    if (!judged_ && stage > Stage::head && !judge_head()) return;
    if (stage == Stage::failed) return refuse(reader_->error(), false);
    if (!count_body()) return;
    if (stage == Stage::complete) return dispatch();
    if (stage == before && input_.size() == size) return;
  }
}

// False: it was answered.
bool Connection::judge_head() {
  judged_ = true;
  HttpRequest& request = reader_->request();
  is_head_ = request.method == "HEAD";
  keeps_alive_ = reader_->keeps_alive();
  if (const std::string_view id = request.header("x-request-id"); is_good_id(id)) id_ = std::string(id);
  request.id = id_;
  cors_headers_ = hub_->access.cors_headers(request);
  const bool has_body = reader_->stage() == Stage::body;
  if (reader_->stage() == Stage::failed) return true;
  if (is_surplus_) return refuse(busy_reply("[server] too many connections", "too_many_connections"), false), false;
  if (hub_->draining) return refuse(busy_reply("[server] the server is shutting down", "shutting_down"), false), false;
  if (auto answer = hub_->access.judge(request, peer_)) return refuse(std::move(*answer), !has_body), false;
  set_deadline(kRequest, hub_->options.request_timeout);
  if (!has_body) return true;
  phase_ = Phase::body;
  set_deadline(kPhase, hub_->options.body_timeout);
  if (reader_->expects_continue() && input_.empty()) {
    append("HTTP/1.1 100 Continue\r\n\r\n");
    write_some();
  }
  return true;
}

// All bodies together are bounded. False: this one was too much.
bool Connection::count_body() {
  hub_->body_bytes += reader_->body_bytes() - counted_body_bytes_;
  counted_body_bytes_ = reader_->body_bytes();
  if (hub_->body_bytes <= kMaxBodiesAtOnce * hub_->options.max_body_bytes) return true;
  refuse(busy_reply("[server] too many large requests at once", "too_many_requests"), false);
  return false;
}

void Connection::dispatch() {
  phase_ = Phase::answer;
  answer_ = Answer::waited_for;
  clear_deadline(kPhase);
  const std::uint64_t serial = serial_;
  auto exchange = std::make_shared<ConnectionExchange>(shared_from_this(), serial, std::move(reader_->request()));
  try {
    hub_->handler(std::move(exchange));
  } catch (const std::exception&) {
    if (!is_gone(serial)) fail_answer(500, "[server] a fault of the server's own", "internal_error");
  }
  if (input_ended_ && phase_ == Phase::answer && answer_ != Answer::complete) drop();
}

// ---- the handler's side ----

bool Connection::expects(std::uint64_t serial, Answer answer) const {
  return serial == serial_ && phase_ == Phase::answer && answer_ == answer;
}

void Connection::reply(std::uint64_t serial, HttpReply reply) {
  if (!expects(serial, Answer::waited_for)) return;
  gone_call_ = nullptr;
  send_reply(std::move(reply));
}

void Connection::begin_stream(std::uint64_t serial, HttpReply head) {
  if (!expects(serial, Answer::waited_for)) return;
  answer_ = Answer::streaming;
  is_event_stream_ = head.content_type.starts_with("text/event-stream");
  at_event_end_ = true;
  append(head_of(head, false));
  if (is_event_stream_) set_deadline(kComment, hub_->options.keep_alive_interval);
  write_some();
}

void Connection::write(std::uint64_t serial, std::string_view bytes) {
  if (!expects(serial, Answer::streaming) || bytes.empty()) return;
  if (backlog() > hub_->options.max_backlog_bytes) return drop();
  at_event_end_ = bytes.ends_with("\n\n");
  if (is_event_stream_) set_deadline(kComment, hub_->options.keep_alive_interval);
  append_chunk(bytes);
  write_some();
}

void Connection::end_stream(std::uint64_t serial) {
  if (!expects(serial, Answer::streaming)) return;
  gone_call_ = nullptr;
  complete_stream();
}

void Connection::complete_stream() {
  answer_ = Answer::complete;
  clear_deadline(kComment);
  if (is_chunked_ && !is_head_) append("0\r\n\r\n");
  if (backlog() == 0) return finish_answer();
  write_some();
}

void Connection::on_gone(std::uint64_t serial, std::function<void()> call) {
  if (is_gone(serial)) {
    asio::post(hub_->io, std::move(call));
  } else {
    gone_call_ = std::move(call);
  }
}

void Connection::on_abandoned(std::uint64_t serial) {
  if (!is_gone(serial)) fail_answer(500, "[server] a fault of the server's own", "internal_error");
}

void Connection::end_exchange() {
  ++serial_;
  if (gone_call_) asio::post(hub_->io, std::move(gone_call_));
  gone_call_ = nullptr;
}

// The answer that runs ends here, so that its client can tell.
void Connection::fail_answer(int status, std::string_view message, std::string_view code) {
  if (phase_ != Phase::answer || answer_ == Answer::complete) return;
  keeps_alive_ = false;
  if (answer_ == Answer::waited_for) {
    end_exchange();
    return send_reply(error_reply(status, message, code));
  }
  if (!is_event_stream_) return drop();
  append_chunk(fmt::format("{}data: {}\n\n", at_event_end_ ? "" : "\n\n", error_json(status, message, code)));
  end_exchange();
  complete_stream();
}

// ---- writing ----

// `understood`: the next request can be found behind this one.
void Connection::refuse(HttpReply reply, bool understood) {
  if (!understood) keeps_alive_ = false;
  if (hub_->on_refused && reply.status >= 400) {
    HttpRequest& request = reader_->request();
    request.id = id_;
    request.client = peer_;
    hub_->on_refused(request, reply.status);
  }
  phase_ = Phase::answer;
  clear_deadline(kPhase);
  send_reply(std::move(reply));
}

void Connection::send_reply(HttpReply reply) {
  answer_ = Answer::complete;
  append(head_of(reply, true));
  if (!is_head_ && !has_no_body(reply.status)) append(reply.body);
  write_some();
}

std::string Connection::head_of(HttpReply& reply, bool has_length) {
  const bool is_1_0 = reader_->is_http_1_0();
  is_chunked_ = !has_length && !is_1_0;
  const Framing framing = has_no_body(reply.status) ? Framing::none
                          : has_length              ? Framing::length
                          : is_chunked_             ? Framing::chunked
                                                    : Framing::until_close;
  if (framing == Framing::until_close || hub_->draining || input_ended_) keeps_alive_ = false;
  reply.headers.insert(reply.headers.end(), cors_headers_.begin(), cors_headers_.end());
  return reply_head(reply, framing, !keeps_alive_ ? "close" : is_1_0 ? "keep-alive" : "", id_);
}

void Connection::append_chunk(std::string_view bytes) {
  if (is_head_) return;
  if (!is_chunked_) return append(bytes);
  append(fmt::format("{:x}\r\n", bytes.size()));
  append(bytes);
  append("\r\n");
}

void Connection::append(std::string_view bytes) {
  waiting_ += bytes;
  hub_->backlog_bytes += bytes.size();
}

void Connection::write_some() {
  if (is_writing_ || phase_ == Phase::closed) return;
  if (num_sent_ == sending_.size()) {
    sending_.clear();
    num_sent_ = 0;
    sending_.swap(waiting_);
  }
  if (sending_.empty()) return;
  is_writing_ = true;
  set_deadline(kWrite, hub_->options.write_timeout);
  stream_->write_some(std::string_view(sending_).substr(num_sent_), guarded(&Connection::on_written));
}

void Connection::on_written(Stream::Code code, std::size_t count) {
  is_writing_ = false;
  if (phase_ == Phase::closed) return;
  if (code) return drop();
  num_sent_ += count;
  hub_->backlog_bytes -= count;
  clear_deadline(kWrite);
  if (backlog() > 0) return write_some();
  if (phase_ == Phase::answer && answer_ == Answer::complete) finish_answer();
}

void Connection::finish_answer() {
  ++serial_;
  answer_ = Answer::none;
  clear_deadline(kRequest);
  clear_deadline(kComment);
  sending_ = waiting_ = std::string();  // a long reply's memory is not kept
  num_sent_ = 0;
  hub_->body_bytes -= counted_body_bytes_;
  counted_body_bytes_ = 0;
  const bool has_next = keeps_alive_ && !hub_->draining && !(input_ended_ && input_.empty());
  if (!has_next) return linger();
  begin_request(hub_->options.idle_timeout);
}

// Closes once the client has seen everything: a socket closed over unread bytes would take the reply back.
void Connection::linger() {
  if (input_ended_) return close();
  phase_ = Phase::linger;
  input_.clear();
  set_deadline(kPhase, kLingerTime);
  stream_->end_output([self = shared_from_this()](Stream::Code) {});
}

void Connection::close() {
  if (phase_ == Phase::closed) return;
  stream_->close();
  on_close();
}

void Connection::drop() {
  if (phase_ == Phase::closed) return;
  const bool is_awaited = phase_ == Phase::answer && answer_ != Answer::complete;
  stream_->reset();
  on_close();
  if (is_awaited) end_exchange();
}

void Connection::on_close() {
  phase_ = Phase::closed;
  timer_.cancel();
  hub_->backlog_bytes -= backlog();
  hub_->body_bytes -= counted_body_bytes_;
  waiting_.clear();  // what is being sent stays where the system reads it
  hub_->on_closed(shared_from_this());
}

// ---- time ----

void Connection::set_deadline(Deadline which, std::chrono::milliseconds from_now) {
  if (from_now.count() <= 0) return clear_deadline(which);
  deadlines_[which] = Clock::now() + from_now;
  arm_timer();
}

// A timer that fires early looks again: moving a deadline back, as each token does, costs nothing.
void Connection::arm_timer() {
  const Clock::time_point next = *std::ranges::min_element(deadlines_);
  if (next == Clock::time_point::max() || (is_timer_armed_ && timer_.expiry() <= next)) return;
  timer_.expires_at(next);
  timer_.async_wait(guarded(&Connection::on_timer));
  is_timer_armed_ = true;
}

void Connection::on_timer(Stream::Code code) {
  if (code || phase_ == Phase::closed) return;  // another was set
  is_timer_armed_ = false;
  const Clock::time_point now = Clock::now();
  const auto passed = [&](Deadline which) {
    const bool has_passed = deadlines_[which] <= now;
    if (has_passed) clear_deadline(which);
    return has_passed;
  };
  if (passed(kWrite)) return drop();
  if (passed(kPhase)) on_phase_end();
  if (passed(kRequest)) {
    if (phase_ == Phase::answer) fail_answer(504, "[server] the request took longer than --request-timeout", "timeout");
    else if (phase_ == Phase::body) refuse(error_reply(408, "[http] body: not complete within the time", "timeout"), false);
  }
  if (passed(kComment) && phase_ == Phase::answer && answer_ == Answer::streaming) {
    if (at_event_end_ && backlog() == 0) write(serial_, ": keep-alive\n\n");
    else set_deadline(kComment, hub_->options.keep_alive_interval);
  }
  if (phase_ != Phase::closed) arm_timer();
}

void Connection::on_phase_end() {
  switch (phase_) {
    case Phase::head: return refuse(error_reply(408, "[http] head: not complete within the time", "timeout"), false);
    case Phase::body: return refuse(error_reply(408, "[http] body: not complete within the time", "timeout"), false);
    case Phase::idle: return linger();
    case Phase::handshake: return drop();
    case Phase::linger: return close();
    case Phase::answer:
    case Phase::closed: return;
  }
}

}  // namespace couplet::server
