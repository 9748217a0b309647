#pragma once
// One client's connection: its requests are read, judged and answered in order, one at a time, each phase within its time.
// A read is always under way, so that a client that leaves is noticed in silence too. Closing only its sending side
// counts as leaving, unless the reply stands already: nothing else tells a program that waits from one that is gone.

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/access.h"
#include "server/exchange.h"
#include "server/options.h"
#include "server/request_reader.h"
#include "server/stream.h"

namespace couplet::server {

class Connection;

// What the connections of a server share.
struct ConnectionHub {
  boost::asio::io_context& io;
  ServerOptions options;
  Access access;
  Handler handler;
  std::function<void(const std::shared_ptr<Connection>&)> on_closed;  // once each
  Refused on_refused;  // may be empty
  bool draining = false;
  std::size_t backlog_bytes = 0;  // written by routes, not yet taken by clients
  std::size_t body_bytes = 0;     // of requests that are read or answered now

  std::string draw_id();
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `is_surplus`: beyond the limit of connections, its request is refused.
  Connection(std::shared_ptr<ConnectionHub> hub, std::unique_ptr<Stream> stream, std::string peer, bool is_surplus);

  void start();
  void drain();   // closes now, or after the reply that runs
  void cancel();  // what runs ends with an error that its client can read
  void drop();    // closes at once; what runs is told that its client is gone

 private:
  friend class ConnectionExchange;
  using Clock = std::chrono::steady_clock;
  enum class Phase { handshake, idle, head, body, answer, linger, closed };  // in this order
  enum class Answer { none, waited_for, streaming, complete };
  enum Deadline { kPhase, kRequest, kWrite, kComment, kNumDeadlines };

  // Reading.
  void on_handshake(Stream::Code code);
  void read();
  void on_read(Stream::Code code, std::size_t count);
  void on_input_end(Stream::Code code);
  void begin_request(std::chrono::milliseconds timeout);
  void process_input();
  bool judge_head();
  bool count_body();
  void dispatch();

  // The handler's side; `serial` tells the request that is meant from those before.
  bool expects(std::uint64_t serial, Answer answer) const;
  void reply(std::uint64_t serial, HttpReply reply);
  void begin_stream(std::uint64_t serial, HttpReply head);
  void write(std::uint64_t serial, std::string_view bytes);
  void end_stream(std::uint64_t serial);
  void complete_stream();
  void on_gone(std::uint64_t serial, std::function<void()> call);
  bool is_gone(std::uint64_t serial) const { return serial != serial_; }
  void on_abandoned(std::uint64_t serial);
  void end_exchange();  // its handler has no part in what follows
  void fail_answer(int status, std::string_view message, std::string_view code);

  // Writing.
  void refuse(HttpReply reply, bool understood);
  void send_reply(HttpReply reply);
  std::string head_of(HttpReply& reply, bool has_length);
  void append_chunk(std::string_view bytes);
  void append(std::string_view bytes);
  void write_some();
  void on_written(Stream::Code code, std::size_t count);
  void finish_answer();
  void linger();
  void close();
  void on_close();

  // Time.
  void set_deadline(Deadline which, std::chrono::milliseconds from_now);
  void clear_deadline(Deadline which) { deadlines_[which] = Clock::time_point::max(); }
  void arm_timer();
  void on_timer(Stream::Code code);
  void on_phase_end();
  std::size_t backlog() const { return sending_.size() - num_sent_ + waiting_.size(); }

  template <class... Values>
  auto guarded(void (Connection::*member)(Values...));

  std::shared_ptr<ConnectionHub> hub_;
  std::unique_ptr<Stream> stream_;
  std::string peer_;
  bool is_surplus_;
  Phase phase_ = Phase::handshake;

  std::array<char, 16384> incoming_;  // of the read under way
  std::string input_;                 // read and not yet understood, or of later requests
  bool input_ended_ = false;
  std::optional<RequestReader> reader_;
  bool judged_ = false;
  std::size_t counted_body_bytes_ = 0;

  Answer answer_ = Answer::none;
  std::uint64_t serial_ = 1;  // of the request in hand
  std::function<void()> gone_call_;
  std::string id_;
  std::vector<std::pair<std::string, std::string>> cors_headers_;
  bool keeps_alive_ = false, is_head_ = false, is_chunked_ = false, is_event_stream_ = false;
  bool at_event_end_ = false;  // a comment may stand here

  std::string sending_, waiting_;  // the write under way, and what comes after it
  std::size_t num_sent_ = 0;
  bool is_writing_ = false;

  std::array<Clock::time_point, kNumDeadlines> deadlines_;
  boost::asio::steady_timer timer_;
  bool is_timer_armed_ = false;
};

}  // namespace couplet::server
