#pragma once
// A client's byte stream, in the clear or under TLS: the same calls for both. One read and one write may run at a time.

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace couplet::server {

class Stream {
 public:
  using Code = boost::system::error_code;
  using Socket = boost::asio::ip::tcp::socket;
  using Done = std::function<void(Code)>;
  using Moved = std::function<void(Code, std::size_t)>;

  explicit Stream(Socket socket) : socket_(std::move(socket)) {}
  virtual ~Stream() = default;

  virtual void handshake(Done done) = 0;
  virtual void read_some(std::span<char> into, Moved moved) = 0;
  virtual void write_some(std::string_view bytes, Moved moved) = 0;
  virtual void end_output(Done done) = 0;  // the client sees the end of what was written
  void close();  // what runs ends with operation_aborted
  void reset();  // the same, and the client sees that something is missing
  bool is_open() const { return socket_.is_open(); }

 protected:
  Socket socket_;
};

std::unique_ptr<Stream> plain_stream(Stream::Socket socket);
std::unique_ptr<Stream> tls_stream(Stream::Socket socket, boost::asio::ssl::context& context);
// TLS 1.2 and later. Throws Error{usage} that names the file that is no good.
std::unique_ptr<boost::asio::ssl::context> tls_context(const std::string& certificate, const std::string& key);

}  // namespace couplet::server
