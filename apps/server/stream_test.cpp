// TLS: the same server behind it, and what it refuses to start or speak.

#include "server/stream.h"

#include <fmt/format.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <fstream>

#include "couplet/error.h"
#include "server/http_testing.h"

namespace couplet::server {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::Client, testing::echo, testing::Keeper, testing::Server;

// A certificate for localhost that signs itself, and its key, as PEM files of this test.
struct Identity {
  explicit Identity(const std::string& name, const char* password = nullptr) {
    const std::string base = fmt::format("{}couplet_tls_{}_{}", ::testing::TempDir(), ::getpid(), name);
    certificate = base + ".crt";
    key = base + ".key";
    EVP_PKEY* const pair = EVP_EC_gen("P-256");
    X509* const x509 = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, pair);
    X509_NAME* const subject = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(x509, subject);
    X509_sign(x509, pair, EVP_sha256());
    write(certificate, [&](FILE* file) { PEM_write_X509(file, x509); });
    write(key, [&](FILE* file) {
      PEM_write_PrivateKey(file, pair, password ? EVP_aes_128_cbc() : nullptr, nullptr, 0, nullptr, const_cast<char*>(password));
    });
    X509_free(x509);
    EVP_PKEY_free(pair);
  }
  ~Identity() {
    fs::remove(certificate);
    fs::remove(key);
  }
  template <class Write>
  static void write(const std::string& path, Write write) {
    FILE* const file = std::fopen(path.c_str(), "w");
    write(file);
    std::fclose(file);
  }
  ServerOptions options() const {
    ServerOptions options;
    options.tls_certificate = certificate;
    options.tls_key = key;
    return options;
  }
  std::string certificate, key;
};

struct TlsClient {
  explicit TlsClient(int port, int most_version = TLS1_3_VERSION) : stream(io, context) {
    SSL_set_max_proto_version(stream.native_handle(), most_version);
    SSL_set_security_level(stream.native_handle(), 0);
    stream.next_layer().connect({asio::ip::address_v4::loopback(), static_cast<unsigned short>(port)});
    stream.handshake(asio::ssl::stream_base::client, code);
  }
  void send(const std::string& bytes) { asio::write(stream, asio::buffer(bytes), code); }
  std::string receive_all() {
    std::string all;
    asio::read(stream, asio::dynamic_buffer(all), code);
    return all;
  }
  asio::io_context io;
  asio::ssl::context context{asio::ssl::context::tls_client};
  asio::ssl::stream<asio::ip::tcp::socket> stream;
  boost::system::error_code code;
};

TEST(Tls, CarriesRequestsAndEndsInOrder) {
  const Identity identity("carries");
  Server server(echo, identity.options());
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(server.port(), version);
    ASSERT_FALSE(client.code) << client.code.message();
    EXPECT_EQ(SSL_version(client.stream.native_handle()), version);
    client.send(fmt::format("POST /1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000\r\n\r\n{}"
                            "GET /2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", std::string(300'000, 'x')));
    const std::string replies = client.receive_all();
    EXPECT_EQ(client.code, asio::error::eof);  // told, not cut
    EXPECT_NE(replies.find(std::string(300'000, 'x')), std::string::npos);
    EXPECT_TRUE(replies.ends_with("GET /2 [] 127.0.0.1 "));
  }
}

TEST(Tls, OldVersionsAreRefused) {
  const Identity identity("old");
  Server server(echo, identity.options());
  const TlsClient client(server.port(), TLS1_1_VERSION);
  EXPECT_EQ(ERR_GET_REASON(static_cast<unsigned long>(client.code.value())), SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
}

TEST(Tls, WhatIsNoHandshakeEnds) {
  const Identity identity("none");
  ServerOptions options = identity.options();
  options.header_timeout = 50ms;
  Server server(echo, options);
  Client plain(server.port()), silent(server.port());
  plain.get("/");
  while (plain.receive()) {
  }
  EXPECT_TRUE(silent.ends());
  EXPECT_TRUE(server.becomes([&] { return server.http().num_connections() == 0; }));
}

TEST(Tls, WhoeverLeavesIsNoticedInSilence) {
  const Identity identity("leaves");
  Keeper keeper;
  Server server(keeper, identity.options());
  int expected = 0;
  for (const bool says_so : {true, false}) {
    TlsClient client(server.port());
    client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ++expected;
    ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == static_cast<std::size_t>(expected); }));
    server.call([&] { keeper.exchanges.back()->begin_stream({.content_type = "text/event-stream"}); });
    if (says_so) SSL_shutdown(client.stream.native_handle());
    client.stream.next_layer().close();
    EXPECT_TRUE(server.becomes([&] { return keeper.num_gone == expected; }));
  }
}

TEST(Tls, SlowReadersAreDropped) {
  const Identity identity("slow");
  Keeper keeper;
  ServerOptions options = identity.options();
  options.max_backlog_bytes = 100'000;
  Server server(keeper, options);
  TlsClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == 1; }));
  server.call([&] { keeper.exchanges.back()->begin_stream({.content_type = "text/event-stream"}); });
  const std::string piece(50'000, 'x');
  EXPECT_TRUE(server.becomes([&] {
    keeper.exchanges.back()->write(piece);
    EXPECT_LE(server.http().backlog_bytes(), options.max_backlog_bytes + piece.size() + 100);
    return keeper.num_gone == 1;
  }));
}

TEST(Tls, FilesThatAreNoGoodAreNamedAtTheStart) {
  const Identity identity("good"), other("other"), locked("locked", "secret");
  const auto refused = [&](const std::string& certificate, const std::string& key, const std::string& named) {
    asio::io_context io;
    ServerOptions options;
    options.port = 0;
    options.tls_certificate = certificate;
    options.tls_key = key;
    try {
      HttpServer(io, options, echo);
      ADD_FAILURE() << certificate << " " << key;
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_NE(message.find(named), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  };
  refused("/nowhere.crt", identity.key, "/nowhere.crt");
  refused(identity.certificate, "/nowhere.key", "/nowhere.key");
  refused(identity.key, identity.key, "--tls-cert");
  refused(identity.certificate, identity.certificate, "--tls-key");
  refused(identity.certificate, other.key, "--tls-key");
  refused(locked.certificate, locked.key, "--tls-key");
  refused(identity.certificate, "", "--tls-cert alone");
  refused("", identity.key, "--tls-key alone");
}

TEST(Tls, OtherAddressesThanThisMachineNeedAKey) {
  asio::io_context io;
  ServerOptions options;
  options.port = 0;
  for (const char* host : {"0.0.0.0", "::"}) {
    options.host = host;
    EXPECT_THROW(HttpServer(io, options, echo), Error) << host;
  }
  options.host = "0.0.0.0";
  options.api_keys = {"key"};
  EXPECT_GT(HttpServer(io, options, echo).port(), 0);
  options.host = "no.such.host.invalid";
  EXPECT_THROW(HttpServer(io, options, echo), Error);
}

}  // namespace
}  // namespace couplet::server
