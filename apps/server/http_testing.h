#pragma once
// For tests of the HTTP layer: a server in this process with a handler of the test's own, and a client that is a raw
// socket, so that it can misbehave. A reply that does not come within kPatience is an error, never a hang.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/http_server.h"

namespace couplet::server::testing {

inline constexpr int kPatienceMs = 20'000;

struct Reply {
  int status = 0;  // 0: the connection ended before a whole head
  std::map<std::string, std::string> headers;
  std::string body;
  bool whole = false;  // the body came to its end
};

class Client {
 public:
  explicit Client(int port, int receive_buffer_bytes = 0) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer_bytes > 0)
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof receive_buffer_bytes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // False once the other side has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  void get(std::string_view path, std::string_view headers = "") {
    send("GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(headers) + "\r\n");
  }
  void post(std::string_view path, std::string_view body, std::string_view headers = "") {
    send("POST " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + std::string(headers) + "\r\n" + std::string(body));
  }

  // One more piece of what comes; false at the end (or reset), which counts as a failure when it does not come in time.
  bool receive() {
    pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, kPatienceMs) != 1) {
      ADD_FAILURE() << "nothing came within " << kPatienceMs << " ms";
      return false;
    }
    char buffer[65536];
    const ssize_t count = ::recv(fd_, buffer, sizeof buffer, 0);
    if (count <= 0) return false;
    input_.append(buffer, static_cast<std::size_t>(count));
    return true;
  }
  bool receive_until(std::string_view text) {
    while (input_.find(text) == std::string::npos)
      if (!receive()) return false;
    return true;
  }
  std::string take_until(std::string_view text) {  // "" where it never comes
    if (!receive_until(text)) return "";
    const std::size_t end = input_.find(text) + text.size();
    std::string taken = input_.substr(0, end);
    input_.erase(0, end);
    return taken;
  }
  bool ends() {  // everything else that comes is an error
    while (receive()) {
    }
    return input_.empty();
  }

  Reply reply(bool to_head = false) {
    Reply reply;
    const std::string head = take_until("\r\n\r\n");
    if (!head.starts_with("HTTP/1.1 ")) return reply;
    reply.status = std::stoi(head.substr(9));
    for (std::size_t at = head.find("\r\n") + 2; at + 2 < head.size();) {
      const std::size_t end = head.find("\r\n", at), colon = head.find(": ", at);
      reply.headers.emplace(head.substr(at, colon - at), head.substr(colon + 2, end - colon - 2));
      at = end + 2;
    }
    if (to_head || reply.status == 204 || reply.status == 100) return reply.whole = true, reply;
    read_body(reply);
    return reply;
  }

  void end_output() { ::shutdown(fd_, SHUT_WR); }
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  void read_body(Reply& reply) {
    if (const auto length = reply.headers.find("content-length"); length != reply.headers.end()) {
      const std::size_t size = std::stoul(length->second);
      while (input_.size() < size && receive()) {
      }
      reply.whole = input_.size() >= size;
      reply.body = input_.substr(0, size);
      input_.erase(0, size);
    } else if (reply.headers.contains("transfer-encoding")) {
      while (read_chunk(reply)) {
      }
    } else {
      reply.whole = ends() || true;
      reply.body = std::exchange(input_, "");
    }
  }
  bool read_chunk(Reply& reply) {
    const std::string line = take_until("\r\n");
    if (line.empty()) return false;
    const std::size_t size = std::stoul(line, nullptr, 16);
    while (input_.size() < size + 2)
      if (!receive()) return false;
    reply.body += input_.substr(0, size);
    EXPECT_EQ(input_.substr(size, 2), "\r\n");
    input_.erase(0, size + 2);
    reply.whole = size == 0;
    return size > 0;
  }

  int fd_;
  std::string input_;
};

// Keeps what it is asked, for the test to answer. Its members belong to the server's thread.
struct Keeper {
  std::vector<std::shared_ptr<Exchange>> exchanges;
  int num_gone = 0;

  void take(std::shared_ptr<Exchange> exchange) {
    exchange->on_gone([this] { ++num_gone; });
    exchanges.push_back(std::move(exchange));
  }
};

// Runs until it goes out of scope; everything of the server happens on its one thread.
class Server {
 public:
  explicit Server(Keeper& keeper, ServerOptions options = {})
      : Server([&keeper](std::shared_ptr<Exchange> exchange) { keeper.take(std::move(exchange)); }, std::move(options)) {
    keeper_ = &keeper;
  }
  explicit Server(Handler handler, ServerOptions options = {}) {
    options.port = 0;
    http_ = std::make_unique<HttpServer>(io_, options, std::move(handler));
    port_ = http_->port();
    http_->start();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Server() {
    call([this] {
      http_->close_all();
      if (keeper_) keeper_->exchanges.clear();
    });
    work_.reset();
    thread_.join();
  }

  int port() const { return port_; }
  boost::asio::io_context& io() { return io_; }
  HttpServer& http() { return *http_; }

  // Runs on the server's thread, and waits for it.
  template <class Function>
  std::invoke_result_t<Function> call(Function function) {
    std::packaged_task<decltype(function())()> task(std::move(function));
    auto result = task.get_future();
    boost::asio::post(io_, std::ref(task));
    return result.get();
  }
  // Asks on the server's thread, again and again, until it holds.
  template <class Condition>
  bool becomes(Condition condition) {
    for (int waited = 0; waited < kPatienceMs; waited += 5) {
      if (call(condition)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

 private:
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  std::unique_ptr<HttpServer> http_;
  int port_ = 0;
  Keeper* keeper_ = nullptr;
  std::thread thread_;
};

// Answers at once with what it was asked.
inline void echo(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request();
  HttpReply reply;
  reply.content_type = "text/plain";
  reply.body = request.method + " " + request.path + " [" + request.query + "] " + request.client + " " + request.body;
  exchange->reply(std::move(reply));
}

}  // namespace couplet::server::testing
