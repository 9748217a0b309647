// The HTTP layer by itself: what comes in is read strictly, in order and within its limits.

#include "server/http_server.h"

#include <fmt/format.h>

#include "couplet/error.h"
#include "server/http_testing.h"

namespace couplet::server {
namespace {

namespace asio = boost::asio;
using testing::Client, testing::echo, testing::Keeper, testing::Reply, testing::Server;

// The status of the only reply, after which the connection is closed.
int last_status(int port, std::string_view bytes) {
  Client client(port);
  client.send(bytes);
  const Reply reply = client.reply();
  EXPECT_TRUE(reply.whole) << bytes;
  EXPECT_EQ(reply.headers.contains("connection") ? reply.headers.at("connection") : "", "close") << bytes;
  EXPECT_NE(reply.body.find("\"error\":{\"message\":\"["), std::string::npos) << reply.body;
  EXPECT_TRUE(client.ends()) << bytes;
  return reply.status;
}

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  Server server(echo);
  Client client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.post("/a%20b%C3%A9?x=1&y=%zz", fmt::format("body {}", i));
    const Reply reply = client.reply();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, fmt::format("POST /a b\u00e9 [x=1&y=%zz] 127.0.0.1 body {}", i));
    EXPECT_EQ(reply.headers.at("content-type"), "text/plain");
    EXPECT_EQ(reply.headers.at("x-content-type-options"), "nosniff");
    EXPECT_EQ(reply.headers.at("cache-control"), "no-store");
    EXPECT_TRUE(reply.headers.at("date").ends_with(" GMT"));
    EXPECT_FALSE(reply.headers.contains("connection"));
  }
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  Server server(echo);
  Client client(server.port());
  std::string all;
  for (int i = 0; i < 100; ++i) all += fmt::format("\r\nGET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", i);
  client.send(all);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(client.reply().body, fmt::format("GET /{} [] 127.0.0.1 ", i));
}

TEST(HttpServer, TakesBytesOneByOne) {
  Server server(echo);
  Client client(server.port());
  for (const char c : std::string("POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                                  "3;note=1\r\nabc\r\n0A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET /y HTTP/1.1\r\nHost: [::1]:1\r\n\r\n"))
    client.send({&c, 1});
  for (const char c : std::string("POST /z HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\nC: d\r\n\r\n"))
    client.send({&c, 1});
  EXPECT_EQ(client.reply().body, "POST /x [] 127.0.0.1 abc0123456789");
  EXPECT_EQ(client.reply().body, "GET /y [] 127.0.0.1 ");
  EXPECT_EQ(client.reply().body, "POST /z [] 127.0.0.1 ");
}

TEST(HttpServer, SpeaksHttp10) {
  Server server(echo);
  Client closed(server.port());
  closed.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(closed.reply().headers.at("connection"), "close");
  EXPECT_TRUE(closed.ends());
  Client kept(server.port());
  for (int i = 0; i < 2; ++i) {
    kept.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(kept.reply().headers.at("connection"), "keep-alive");
  }
}

TEST(HttpServer, ClosesWhenAsked) {
  Server server(echo);
  Client client(server.port());
  client.get("/", "Connection: close\r\n");
  EXPECT_EQ(client.reply().headers.at("connection"), "close");
  EXPECT_TRUE(client.ends());
}

TEST(HttpServer, AnswersHeadWithoutBody) {
  Server server(echo);
  Client client(server.port());
  client.send("HEAD /h HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.reply(true).headers.at("content-length"), "21");
  client.get("/after");
  EXPECT_EQ(client.reply().body, "GET /after [] 127.0.0.1 ");
}

TEST(HttpServer, SaysContinueWhenAsked) {
  Server server(echo);
  Client client(server.port());
  const std::string head = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
  client.send(head);
  EXPECT_EQ(client.reply().status, 100);
  client.send("ok");
  EXPECT_EQ(client.reply().body, "POST / [] 127.0.0.1 ok");
  client.send(head + "ok");  // did not wait: it needs no word
  EXPECT_EQ(client.reply().status, 200);
  EXPECT_EQ(last_status(server.port(), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 200-ok\r\n\r\n"), 417);
}

TEST(HttpServer, TakesTheHostOfAnAbsoluteTarget) {
  Server server(echo);
  Client client(server.port());
  client.send("GET http://localhost:1/p?q HTTP/1.1\r\nHost: other.example\r\n\r\n");
  EXPECT_EQ(client.reply().body, "GET /p [q] 127.0.0.1 ");
  client.send("GET http://localhost HTTP/1.1\r\nHost: other.example\r\n\r\n");
  EXPECT_EQ(client.reply().body, "GET / [] 127.0.0.1 ");
  client.send("GET http://other.example/p HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.reply().status, 403);
}

TEST(HttpServer, RefusesWhatTwoReadersCouldReadInTwoWays) {
  Server server(echo);
  const std::string post = "POST / HTTP/1.1\r\nHost: localhost\r\n";
  const std::pair<std::string, int> cases[] = {
      {post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400},
      {post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400},
      {post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
      {post + "Content-Length: 3, 3\r\n\r\nabc", 400},
      {post + "Content-Length: +3\r\n\r\nabc", 400},
      {post + "Content-Length: -3\r\n\r\nabc", 400},
      {post + "Content-Length: 0x3\r\n\r\nabc", 400},
      {post + "Content-Length: 3 \x0b\r\n\r\nabc", 400},
      {post + "Content-Length:\r\n\r\nabc", 400},
      {post + "Content-Length: 99999999999999999999999999\r\n\r\nabc", 400},
      {post + "Content-Length : 3\r\n\r\nabc", 400},
      {post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
      {post + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 501},
      {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {post + "Transfer-Encoding: identity\r\n\r\n", 501},
      {post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501},
      {post + "X: a\r\n b\r\n\r\n", 400},
      {post + "X: a\r\n\tb\r\n\r\n", 400},
      {post + "X: a\nY: b\r\n\r\n", 400},
      {post + "X: a\rb\r\n\r\n", 400},
      {post + std::string("X: a\0b\r\n\r\n", 10), 400},
      {post + "\n", 400},
      {"POST / HTTP/1.1\n\n", 400},
      {"POST / HTTP/1.1\r\n X: a\r\n\r\n", 400},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {post + "Host: localhost\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 505},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"PRI * HTTP/2.0\r\n\r\n", 505},
      {"GET /\r\nHost: a\r\n\r\n", 400},
      {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), 400},  // TLS where none is
      {post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n3\nabc\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n3 3\r\nabc\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n3\r\nabcXX\r\n0", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n11111111111111111\r\nabc\r\n", 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n3;" + std::string(9000, 'x'), 400},
      {post + "Transfer-Encoding: chunked\r\n\r\n0\r\n" + std::string(9000, 'x'), 400},
  };
  for (const auto& [bytes, status] : cases) EXPECT_EQ(last_status(server.port(), bytes), status) << bytes;
}

TEST(HttpServer, RefusesTargetsThatAreNoPaths) {
  Server server(echo);
  for (const char* target : {"/%", "/%4", "/%4g", "/a%00b", "/%0a", "/%ff", "/%c3", "/%ed%a0%80", "/%c0%af", "a", "*", "/\xc3\xa9",
                             "ftp://localhost/", "localhost:80", "//%zz"}) {
    Client client(server.port());
    client.send("GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(client.reply().status, 400) << target;
  }
  Client client(server.port());
  client.send("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.reply().body, "OPTIONS * [] 127.0.0.1 ");
}

TEST(HttpServer, BoundsWhatOneRequestMayHold) {
  ServerOptions options;
  options.max_body_bytes = 1000;
  options.max_header_bytes = 20000;
  Server server(echo, options);
  const std::string post = "POST / HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_EQ(last_status(server.port(), post + "Content-Length: 1001\r\n\r\n"), 413);
  EXPECT_EQ(last_status(server.port(), post + "Content-Length: 18446744073709551615\r\n\r\n"), 413);
  EXPECT_EQ(last_status(server.port(), post + "Transfer-Encoding: chunked\r\n\r\n3e8\r\n" + std::string(1000, 'a') + "\r\n1\r\n"), 413);
  EXPECT_EQ(last_status(server.port(), post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"), 413);
  EXPECT_EQ(last_status(server.port(), post + "X: " + std::string(20000, 'a')), 431);
  std::string many = post;
  while (many.size() < 20001) many += "a:b\r\n";
  EXPECT_EQ(last_status(server.port(), many + "\r\n"), 431);
  EXPECT_EQ(last_status(server.port(), "GET /" + std::string(9000, 'a')), 414);
  EXPECT_EQ(last_status(server.port(), "GET /" + std::string(8192, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n"), 414);
  EXPECT_EQ(last_status(server.port(), std::string(9000, 'G')), 414);

  Client client(server.port());
  client.post("/" + std::string(8191, 'a'), std::string(1000, 'b'), "X: " + std::string(10000, 'c') + "\r\n");
  EXPECT_TRUE(client.reply().body.ends_with(std::string(1000, 'b')));
}

TEST(HttpServer, ALargeBodyThatIsRefusedCanStillBeSent) {
  Server server(echo);
  Client client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000000\r\n\r\n");
  for (int i = 0; i < 50; ++i) client.send(std::string(1'000'000, 'x'));
  EXPECT_EQ(client.reply().status, 413);
}

TEST(HttpServer, GivesEachRequestAnId) {
  Server server([](const std::shared_ptr<Exchange>& exchange) { exchange->reply({.body = exchange->request().id}); });
  Client client(server.port());
  const auto id_of = [&](const std::string& headers) {
    client.get("/", headers);
    const Reply reply = client.reply();
    EXPECT_EQ(reply.headers.at("x-request-id"), reply.body);
    return reply.body;
  };
  EXPECT_EQ(id_of("X-Request-Id: mine-1\r\n"), "mine-1");
  const std::string first = id_of(""), second = id_of("");
  EXPECT_TRUE(first.starts_with("req_"));
  EXPECT_NE(first, second);
  EXPECT_TRUE(id_of("X-Request-Id: two words\r\n").starts_with("req_"));
  EXPECT_TRUE(id_of("X-Request-Id: \xc3\xa9\r\n").starts_with("req_"));
  EXPECT_TRUE(id_of("X-Request-Id: " + std::string(129, 'a') + "\r\n").starts_with("req_"));
  client.send("POST / HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: large\r\nContent-Length: 99999999999\r\n\r\n");
  EXPECT_EQ(client.reply().headers.at("x-request-id"), "large");
}

TEST(HttpServer, NoHeaderOfAReplyCanEndItsLine) {
  Server server([](const std::shared_ptr<Exchange>& exchange) {
    exchange->reply({.headers = {{"x-echo", "a\r\nset-cookie: b"}, {"cache-control", "max-age=1"}}});
  });
  Client client(server.port());
  client.get("/");
  const Reply reply = client.reply();
  EXPECT_EQ(reply.headers.at("x-echo"), "a  set-cookie: b");
  EXPECT_EQ(reply.headers.at("cache-control"), "max-age=1");
}

TEST(HttpServer, AHandlerThatFailsOrForgetsIsA500) {
  Server server([](const std::shared_ptr<Exchange>& exchange) {
    if (exchange->request().path == "/throws") throw std::runtime_error("no");
  });
  for (const char* path : {"/throws", "/forgets"}) {
    Client client(server.port());
    client.get(path);
    EXPECT_EQ(client.reply().status, 500) << path;
    EXPECT_TRUE(client.ends());
  }
}

TEST(HttpServer, TellsOfWhatItRefuses) {
  asio::io_context io;
  std::vector<std::string> refused;
  ServerOptions options;
  options.port = 0;
  HttpServer http(io, options, echo, [&](const HttpRequest& request, int status) {
    refused.push_back(fmt::format("{} {} {} {} {}", request.method, request.path, request.client, request.id.empty(), status));
  });
  http.start();
  std::thread thread([&] { io.run(); });
  Client client(http.port());
  client.get("/good");
  EXPECT_EQ(client.reply().status, 200);
  client.get("/secret", "Origin: http://evil.example\r\n");
  EXPECT_EQ(client.reply().status, 403);
  client.send("no request\n");
  EXPECT_EQ(client.reply().status, 400);
  asio::post(io, [&] { http.close_all(); });
  thread.join();
  EXPECT_EQ(refused, (std::vector<std::string>{"GET /secret 127.0.0.1 false 403", "  127.0.0.1 false 400"}));
}

TEST(HttpServer, RefusesConnectionsBeyondItsLimit) {
  Keeper keeper;
  ServerOptions options;
  options.max_connections = 2;
  Server server(keeper, options);
  Client first(server.port()), second(server.port());
  ASSERT_TRUE(server.becomes([&] { return server.http().num_connections() == 2; }));
  std::vector<std::unique_ptr<Client>> surplus;
  for (int i = 0; i < 60; ++i) surplus.push_back(std::make_unique<Client>(server.port()));  // some wait unaccepted
  for (auto& client : surplus) {
    client->get("/");
    const Reply reply = client->reply();
    EXPECT_EQ(reply.status, 503);
    EXPECT_EQ(reply.headers.at("retry-after"), "1");
    EXPECT_TRUE(client->ends());
    client->close();
  }
  EXPECT_TRUE(server.becomes([&] { return server.http().num_connections() == 2; }));
  first.close();
  ASSERT_TRUE(server.becomes([&] { return server.http().num_connections() == 1; }));
  Client third(server.port());
  third.get("/");
  EXPECT_TRUE(server.becomes([&] { return keeper.exchanges.size() == 1; }));
}

}  // namespace
}  // namespace couplet::server
