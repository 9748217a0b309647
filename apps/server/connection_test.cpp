// The life of a connection: streams, clients that leave, are slow or silent, and the end of the server.

#include "server/connection.h"

#include <fmt/format.h>

#include "server/http_testing.h"

namespace couplet::server {
namespace {

using namespace std::chrono_literals;
using testing::Client, testing::echo, testing::Keeper, testing::Reply, testing::Server;

const HttpReply kEventStream{.content_type = "text/event-stream; charset=utf-8"};

// The exchange of the request that is answered now.
Exchange& last(Keeper& keeper) { return *keeper.exchanges.back(); }

TEST(Connection, StreamsInChunksAndGoesOn) {
  Keeper keeper;
  Server server(keeper);
  Client client(server.port());
  for (std::size_t round = 1; round <= 2; ++round) {
    client.get("/stream");
    ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == round; }));
    server.call([&] { last(keeper).begin_stream(kEventStream); });
    for (int i = 0; i < 5; ++i) {
      server.call([&] { last(keeper).write(fmt::format("data: {}\n\n", i)); });
      EXPECT_TRUE(client.receive_until(fmt::format("data: {}\n\n", i)));
    }
    server.call([&] {
      last(keeper).write("");  // an empty chunk would end it
      last(keeper).write("end\n\n");
      last(keeper).end_stream();
      last(keeper).write("after the end");
    });
    const Reply reply = client.reply();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.headers.at("content-type"), "text/event-stream; charset=utf-8");
    EXPECT_TRUE(reply.body.ends_with("data: 4\n\nend\n\n")) << reply.body;
    EXPECT_TRUE(reply.whole);
  }
  EXPECT_EQ(server.call([&] { return keeper.num_gone; }), 0);
}

TEST(Connection, StreamsToHttp10UntilItCloses) {
  Server server([](const std::shared_ptr<Exchange>& exchange) {
    exchange->begin_stream(kEventStream);
    exchange->write("data: 1\n\n");
    exchange->end_stream();
  });
  Client client(server.port());
  client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const Reply reply = client.reply();
  EXPECT_FALSE(reply.headers.contains("transfer-encoding"));
  EXPECT_EQ(reply.headers.at("connection"), "close");
  EXPECT_EQ(reply.body, "data: 1\n\n");
  Client head(server.port());
  head.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(head.reply(true).headers.at("transfer-encoding"), "chunked");
  EXPECT_EQ(head.reply().body, "data: 1\n\n");
}

TEST(Connection, WhoeverLeavesIsNoticedInSilence) {
  Keeper keeper;
  Server server(keeper);
  const auto begin = [](Exchange&) {};
  const auto stream = [](Exchange& exchange) {
    exchange.begin_stream(kEventStream);
    exchange.write("data: 1\n\n");
  };
  int expected = 0;
  for (const std::function<void(Exchange&)>& phase : {std::function<void(Exchange&)>(begin), std::function<void(Exchange&)>(stream)}) {
    for (void (Client::*leave)() : {&Client::close, &Client::reset, &Client::end_output}) {
      for (const std::string_view behind : {"", "GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n"}) {
        Client client(server.port());
        client.post("/", "x");
        client.send(behind);
        ++expected;
        ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == static_cast<std::size_t>(expected); }));
        server.call([&] { phase(last(keeper)); });
        EXPECT_FALSE(server.call([&] { return last(keeper).gone(); }));
        (client.*leave)();
        EXPECT_TRUE(server.becomes([&] { return keeper.num_gone == expected; }));
        EXPECT_TRUE(server.call([&] { return last(keeper).gone(); }));
        server.call([&] {
          last(keeper).write("too late");
          last(keeper).end_stream();
          last(keeper).reply({});
        });
      }
    }
  }
  EXPECT_TRUE(server.becomes([&] { return server.http().num_connections() == 0; }));
  EXPECT_EQ(server.call([&] { return server.http().backlog_bytes(); }), 0U);
}

TEST(Connection, WhoAsksLaterIsToldToo) {
  std::vector<std::shared_ptr<Exchange>> kept;
  Keeper keeper;
  Server server(keeper);
  Client client(server.port());
  client.get("/");
  ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == 1; }));
  client.close();
  ASSERT_TRUE(server.becomes([&] { return last(keeper).gone(); }));
  bool told = false;
  server.call([&] {
    last(keeper).on_gone([&] { told = true; });
    EXPECT_FALSE(told);  // posted, not called from within
  });
  EXPECT_TRUE(server.becomes([&] { return told; }));
}

TEST(Connection, NobodyIsToldOfAClientThatLeavesAfterItsReply) {
  Keeper keeper;
  Server server(keeper);
  Client client(server.port());
  client.get("/");
  ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == 1; }));
  server.call([&] { last(keeper).reply({.body = "{}"}); });
  EXPECT_EQ(client.reply().body, "{}");
  client.reset();
  EXPECT_TRUE(server.becomes([&] { return server.http().num_connections() == 0; }));
  EXPECT_EQ(server.call([&] { return keeper.num_gone; }), 0);
}

TEST(Connection, OneWhoSaysAllAndStopsSendingIsAnswered) {
  Server server(echo);
  Client client(server.port());
  client.send("GET /1 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /2 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  client.end_output();
  EXPECT_EQ(client.reply().body, "GET /1 [] 127.0.0.1 ");
  EXPECT_EQ(client.reply().body, "GET /2 [] 127.0.0.1 ");
  EXPECT_TRUE(client.ends());
}

TEST(Connection, LeavingWithinARequestEndsIt) {
  Keeper keeper;
  Server server(keeper);
  const std::string whole = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n1234";
  for (std::size_t size = 0; size <= whole.size(); size += 3) {
    Client client(server.port());
    client.send(whole.substr(0, size));
    ASSERT_TRUE(server.becomes([&] { return server.http().num_connections() == 1; }));
    if (size % 2) client.reset();
    client.close();
    ASSERT_TRUE(server.becomes([&] { return server.http().num_connections() == 0; }));
  }
  EXPECT_TRUE(server.call([&] { return keeper.exchanges.empty(); }));
}

TEST(Connection, TooMuchSentBehindARequestIsNotKept) {
  Keeper keeper;
  Server server(keeper);
  Client client(server.port());
  client.get("/");
  ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == 1; }));
  const std::string next = "GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (int i = 0; i < 100'000; ++i) ASSERT_TRUE(client.send(next));
  server.call([&] { last(keeper).reply({.body = "{}"}); });
  EXPECT_EQ(client.reply().body, "{}");
  EXPECT_TRUE(client.ends());
  EXPECT_EQ(server.call([&] { return keeper.exchanges.size(); }), 1U);
}

TEST(Connection, SlowReadersAreDroppedAtTheirBound) {
  Keeper keeper;
  ServerOptions options;
  options.max_backlog_bytes = 100'000;
  Server server(keeper, options);
  Client client(server.port(), 4096);
  client.get("/");
  ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == 1; }));
  server.call([&] { last(keeper).begin_stream(kEventStream); });
  const std::string piece(10'000, 'x');
  std::size_t most = 0;
  EXPECT_TRUE(server.becomes([&] {
    for (int i = 0; i < 10; ++i) last(keeper).write(piece);
    most = std::max(most, server.http().backlog_bytes());
    return keeper.num_gone == 1;
  }));
  EXPECT_GT(most, 0U);
  EXPECT_LE(most, options.max_backlog_bytes + piece.size() + 100);
  EXPECT_EQ(server.call([&] { return server.http().backlog_bytes(); }), 0U);
  EXPECT_EQ(server.call([&] { return server.http().num_connections(); }), 0);
}

TEST(Connection, ReadersThatStopAreDroppedAfterAWhile) {
  Keeper keeper;
  ServerOptions options;
  options.write_timeout = 50ms;
  Server server(keeper, options);
  Client client(server.port(), 4096);
  client.get("/");
  ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == 1; }));
  server.call([&] { last(keeper).reply({.body = std::string(20'000'000, 'x')}); });
  EXPECT_TRUE(server.becomes([&] { return server.http().num_connections() == 0; }));
  EXPECT_EQ(server.call([&] { return server.http().backlog_bytes(); }), 0U);
}

TEST(Connection, RequestsThatTakeTooLongToComeAre408) {
  ServerOptions options;
  options.header_timeout = options.body_timeout = options.idle_timeout = 50ms;
  Server server(echo, options);
  const auto ends_with = [&](std::string_view bytes, int status) {
    Client client(server.port());
    client.send(bytes);
    const Reply reply = client.reply();
    EXPECT_EQ(reply.status, status) << bytes;
    return client.ends();
  };
  EXPECT_TRUE(ends_with("G", 408));
  EXPECT_TRUE(ends_with("GET / HTTP/1.1\r\nHost: localhost\r\n", 408));
  EXPECT_TRUE(ends_with("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n1234", 408));
  EXPECT_TRUE(ends_with("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 408));
  EXPECT_TRUE(ends_with("", 0));      // said nothing: is told nothing
  EXPECT_TRUE(ends_with("\r\n", 0));
  Client kept(server.port());
  kept.get("/");
  EXPECT_EQ(kept.reply().status, 200);
  EXPECT_TRUE(kept.ends());
  Client second(server.port());
  second.get("/");
  EXPECT_EQ(second.reply().status, 200);
  second.send("GET / HT");
  EXPECT_EQ(second.reply().status, 408);
  EXPECT_TRUE(second.ends());
}

TEST(Connection, AnswersThatTakeTooLongEndWithAnError) {
  Keeper keeper;
  ServerOptions options;
  options.request_timeout = 50ms;
  Server server(keeper, options);
  Client silent(server.port());
  silent.get("/");
  EXPECT_EQ(silent.reply().status, 504);
  EXPECT_TRUE(silent.ends());
  EXPECT_TRUE(server.becomes([&] { return keeper.num_gone == 1; }));

  Client streaming(server.port());
  streaming.get("/");
  ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == 2; }));
  server.call([&] {
    last(keeper).begin_stream(kEventStream);
    last(keeper).write("data: 1\n\n");
  });
  const Reply reply = streaming.reply();
  if (reply.status == 200) {  // else its time ended before the stream began
    EXPECT_TRUE(reply.body.find("\n\ndata: {\"error\":{\"message\":\"[server]") != std::string::npos) << reply.body;
    EXPECT_TRUE(reply.whole);
  }
  EXPECT_TRUE(streaming.ends());
  EXPECT_TRUE(server.becomes([&] { return keeper.num_gone == 2; }));
  EXPECT_TRUE(server.call([&] { return last(keeper).gone(); }));
}

TEST(Connection, SilentEventStreamsCarryComments) {
  Keeper keeper;
  ServerOptions options;
  options.keep_alive_interval = 20ms;
  Server server(keeper, options);
  Client client(server.port());
  client.get("/");
  ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == 1; }));
  server.call([&] { last(keeper).begin_stream(kEventStream); });
  EXPECT_TRUE(client.receive_until("\r\n: keep-alive\n\n\r\n"));
  server.call([&] { last(keeper).write("data: half of"); });
  std::this_thread::sleep_for(60ms);  // no comment may stand here
  server.call([&] {
    last(keeper).write(" it\n\n");
    last(keeper).end_stream();
  });
  EXPECT_NE(client.reply().body.find("data: half of it\n\n"), std::string::npos);
}

TEST(Connection, DrainingEndsWhatIdlesAndLetsTheRestFinish) {
  Keeper keeper;
  Server server(keeper);
  Client idle(server.port()), running(server.port()), half(server.port());
  running.get("/");
  half.send("GET / HTTP/1.1\r\n");
  ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == 1; }));
  ASSERT_TRUE(server.becomes([&] { return server.http().num_connections() == 3; }));
  bool drained = false;
  server.call([&] {
    last(keeper).begin_stream(kEventStream);
    server.http().drain([&] { drained = true; });
  });
  EXPECT_TRUE(idle.ends());
  half.send("Host: localhost\r\n\r\n");
  EXPECT_EQ(half.reply().status, 503);
  EXPECT_TRUE(half.ends());
  idle.close();
  half.close();
  EXPECT_TRUE(server.becomes([&] { return server.http().num_connections() == 1; }));
  EXPECT_FALSE(server.call([&] { return drained; }));
  server.call([&] {
    last(keeper).write("data: 1\n\n");
    last(keeper).end_stream();
  });
  EXPECT_EQ(running.reply().body, "data: 1\n\n");
  EXPECT_TRUE(running.ends());
  running.close();
  EXPECT_TRUE(server.becomes([&] { return drained; }));
}

TEST(Connection, CancellingTellsEachClientWhy) {
  Keeper keeper;
  Server server(keeper);
  Client waiting(server.port()), streaming(server.port()), plain(server.port());
  waiting.get("/waiting");
  ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == 1; }));
  streaming.get("/streaming");
  ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == 2; }));
  plain.get("/plain");
  ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == 3; }));
  server.call([&] {
    keeper.exchanges[1]->begin_stream(kEventStream);
    keeper.exchanges[1]->write("data: 1\n\n");
    keeper.exchanges[2]->begin_stream({.content_type = "text/plain"});
    keeper.exchanges[2]->write("some");
    server.http().cancel_all();
  });
  EXPECT_EQ(waiting.reply().status, 503);
  const Reply reply = streaming.reply();
  EXPECT_EQ(reply.body.find("data: 1\n\ndata: {\"error\":{\"message\":\"[server]"), 0U) << reply.body;
  EXPECT_TRUE(reply.whole);
  EXPECT_FALSE(plain.reply().whole);  // nothing else can say that it is cut
  EXPECT_TRUE(server.becomes([&] { return keeper.num_gone == 3; }));
}

TEST(Connection, TwoHundredStreamsAtOnce) {
  Keeper keeper;
  Server server(keeper);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 200; ++i) {
    clients.push_back(std::make_unique<Client>(server.port()));
    clients.back()->get(fmt::format("/{}", i));
  }
  ASSERT_TRUE(server.becomes([&] { return keeper.exchanges.size() == 200; }));
  server.call([&] {
    for (auto& exchange : keeper.exchanges) exchange->begin_stream(kEventStream);
  });
  for (int round = 0; round < 50; ++round) {
    server.call([&] {
      for (auto& exchange : keeper.exchanges) exchange->write(fmt::format("{}#{}\n\n", exchange->request().path, round));
    });
  }
  server.call([&] {
    for (auto& exchange : keeper.exchanges) exchange->end_stream();
  });
  for (int i = 0; i < 200; ++i) {
    std::string expected;
    for (int round = 0; round < 50; ++round) expected += fmt::format("/{}#{}\n\n", i, round);
    EXPECT_EQ(clients[static_cast<std::size_t>(i)]->reply().body, expected);
  }
  EXPECT_EQ(server.call([&] { return keeper.num_gone; }), 0);
}

}  // namespace
}  // namespace couplet::server
