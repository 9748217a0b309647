#include "server/stream.h"

#include <fmt/format.h>
#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "couplet/error.h"

namespace couplet::server {
namespace {

namespace asio = boost::asio;

class PlainStream : public Stream {
 public:
  using Stream::Stream;
  void handshake(Done done) override { done({}); }
  void read_some(std::span<char> into, Moved moved) override {
    socket_.async_read_some(asio::buffer(into.data(), into.size()), std::move(moved));
  }
  void write_some(std::string_view bytes, Moved moved) override {
    socket_.async_write_some(asio::buffer(bytes.data(), bytes.size()), std::move(moved));
  }
  void end_output(Done done) override {
    Code code;
    socket_.shutdown(Socket::shutdown_send, code);
    done(code);
  }
};

class TlsStream : public Stream {
 public:
  TlsStream(Socket socket, asio::ssl::context& context) : Stream(std::move(socket)), tls_(socket_, context) {}
  void handshake(Done done) override { tls_.async_handshake(asio::ssl::stream_base::server, std::move(done)); }
  void read_some(std::span<char> into, Moved moved) override {
    tls_.async_read_some(asio::buffer(into.data(), into.size()), std::move(moved));
  }
  void write_some(std::string_view bytes, Moved moved) override {
    tls_.async_write_some(asio::buffer(bytes.data(), bytes.size()), std::move(moved));
  }
  void end_output(Done done) override { tls_.async_shutdown(std::move(done)); }

 private:
  asio::ssl::stream<Socket&> tls_;
};

[[noreturn]] void refuse(const char* option, const std::string& path, const boost::system::error_code& code) {
  throw Error(ErrorKind::usage, fmt::format("[server] {}: expected a PEM file of {}, got {}: {}", option,
                                            option == std::string_view("--tls-cert") ? "certificates" : "an unencrypted key", path,
                                            code.message()));
}

int choose_http_1_1(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in, unsigned in_size, void*) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1";
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kOurs, sizeof kOurs - 1, in, in_size) != OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_NOACK;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

void Stream::close() {
  Code ignored;
  socket_.close(ignored);
}

void Stream::reset() {
  Code ignored;
  if (socket_.is_open()) socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  close();
}

std::unique_ptr<Stream> plain_stream(Stream::Socket socket) { return std::make_unique<PlainStream>(std::move(socket)); }

std::unique_ptr<Stream> tls_stream(Stream::Socket socket, asio::ssl::context& context) {
  return std::make_unique<TlsStream>(std::move(socket), context);
}

std::unique_ptr<asio::ssl::context> tls_context(const std::string& certificate, const std::string& key) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_alpn_select_cb(native, choose_http_1_1, nullptr);
  // Nobody sits at the terminal to type a password.
  SSL_CTX_set_default_passwd_cb(native, [](char*, int, int, void*) { return -1; });
  boost::system::error_code code;
  context->use_certificate_chain_file(certificate, code);
  if (code) refuse("--tls-cert", certificate, code);
  context->use_private_key_file(key, asio::ssl::context::pem, code);
  if (code) refuse("--tls-key", key, code);
  if (SSL_CTX_check_private_key(native) != 1)
    throw Error(ErrorKind::usage, fmt::format("[server] --tls-key: expected the key of {}, got another one in {}", certificate, key));
  return context;
}

}  // namespace couplet::server
