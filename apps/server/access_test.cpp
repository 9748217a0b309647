// Who may ask, by key, Host and Origin.

#include "server/access.h"

#include <gtest/gtest.h>

#include "couplet/error.h"

namespace couplet::server {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

// The status that a request gets; 0: the handler is asked. `client` is whose share of the engine it uses.
int status(const Access& access, Headers headers, const std::string& path = "/v1/models", const std::string& method = "GET",
           std::string* client = nullptr) {
  HttpRequest request{.method = method, .path = path, .query = "", .headers = std::move(headers), .body = "", .id = "", .client = ""};
  const auto answer = access.judge(request, "peer");
  if (client) *client = request.client;
  return answer ? answer->status : 0;
}

ServerOptions with_keys(std::vector<std::string> keys) {
  ServerOptions options;
  options.api_keys = std::move(keys);
  return options;
}

TEST(Access, KeysOpenAllButThePageAndHealth) {
  const Access access(with_keys({"first", "second"}), true);
  std::string client;
  EXPECT_EQ(status(access, {{"authorization", "Bearer first"}}, "/v1/models", "GET", &client), 0);
  EXPECT_EQ(client, "key:0");
  EXPECT_EQ(status(access, {{"authorization", "bEARER   second"}}, "/v1/models", "GET", &client), 0);
  EXPECT_EQ(client, "key:1");
  EXPECT_EQ(status(access, {{"x-api-key", "second"}}, "/v1/models", "GET", &client), 0);
  EXPECT_EQ(client, "key:1");
  for (const Headers& headers : {Headers{}, {{"authorization", "Bearer "}}, {{"authorization", "Bearer"}}, {{"authorization", "Bearer firs"}},
                                 {{"authorization", "Bearer first2"}}, {{"authorization", "Bearer first "}}, {{"authorization", "Basic first"}},
                                 {{"authorization", "first"}}, {{"x-api-key", ""}}, {{"x-api-key", "FIRST"}},
                                 {{"authorization", "Bearer wrong"}, {"x-api-key", "first"}}}) {
    EXPECT_EQ(status(access, headers), 401);
  }
  for (const char* open : {"/", "/health", "/assets/page.js", "/favicon.ico"}) {
    EXPECT_EQ(status(access, {}, open), 0) << open;
    EXPECT_EQ(status(access, {}, open, "POST"), 401) << open;
  }
  for (const char* closed : {"/metrics", "/v1/chat/completions", "/version", "/openapi.json", "/assets", "/health/", "//", "/tokenize"})
    EXPECT_EQ(status(access, {}, closed), 401) << closed;
}

TEST(Access, WithoutKeysEachPeerIsAClient) {
  const Access access({}, true);
  std::string client;
  EXPECT_EQ(status(access, {{"authorization", "Bearer any"}}, "/v1/models", "GET", &client), 0);
  EXPECT_EQ(client, "peer");
}

TEST(Access, KeysAreWhatAHeaderCanCarry) {
  for (const char* key : {"", "two words", "tab\t", "caf\xc3\xa9", "line\n"}) {
    EXPECT_THROW(Access(with_keys({"good", key}), true), Error) << key;
  }
}

TEST(Access, OnThisMachineTheHostIsOneOfItsNames) {
  ServerOptions options;
  options.allowed_hosts = {"models.example", "Other.example:9"};
  const Access access(options, true);
  for (const char* host : {"localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:1", "127.1.2.3:80", "[::1]", "[::1]:8080", "models.example",
                           "models.example:8080", "other.example"})
    EXPECT_EQ(status(access, {{"host", host}}), 0) << host;
  for (const char* host : {"evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example", "127.evil.example", "[::2]",
                           "[::1", "::1", "localhost:80:80", "localhost:x", "a@localhost", "0.0.0.0", "10.0.0.1", "127.0.0.1.1", ".localhost"})
    EXPECT_EQ(status(access, {{"host", host}}), 403) << host;
  EXPECT_EQ(status(access, {}), 0);  // HTTP/1.0: no browser
}

TEST(Access, ElsewhereTheHostIsCheckedWhereNamesAreGiven) {
  ServerOptions options = with_keys({"key"});
  options.host = "0.0.0.0";
  const Headers headers{{"host", "any.example"}, {"authorization", "Bearer key"}};
  EXPECT_EQ(status(Access(options, false), headers), 0);
  options.allowed_hosts = {"mine.example"};
  EXPECT_EQ(status(Access(options, false), headers), 403);
}

TEST(Access, PagesOfOtherOriginsAreRefused) {
  const Access access({}, true);
  EXPECT_EQ(status(access, {{"host", "localhost:8080"}, {"origin", "http://localhost:8080"}}, "/v1/models", "POST"), 0);
  for (const char* origin : {"http://evil.example", "null", "http://localhost:8081", "http://localhost", "https://localhost:8080.evil.example"})
    for (const char* method : {"GET", "POST", "OPTIONS"})
      EXPECT_EQ(status(access, {{"host", "localhost:8080"}, {"origin", origin}}, "/v1/models", method), 403) << origin;
  HttpRequest request{.method = "GET", .path = "/", .query = "", .headers = {{"origin", "http://evil.example"}}, .body = "", .id = "", .client = ""};
  EXPECT_TRUE(access.cors_headers(request).empty());
}

TEST(Access, AllowedOriginsAreToldSo) {
  ServerOptions options = with_keys({"key"});
  options.allowed_origins = {"https://page.example"};
  const Access access(options, true);
  HttpRequest request{.method = "OPTIONS",
                      .path = "/v1/models",
                      .query = "",
                      .headers = {{"host", "localhost"},
                                  {"origin", "https://page.example"},
                                  {"access-control-request-method", "POST"},
                                  {"access-control-request-headers", "authorization, x-stainless-lang"}},
                      .body = "",
                      .id = "",
                      .client = ""};
  const auto answer = access.judge(request, "peer");
  ASSERT_TRUE(answer);  // a browser asks without the key
  EXPECT_EQ(answer->status, 204);
  const auto header = [](const Headers& headers, const std::string& name) {
    for (const auto& [own, value] : headers)
      if (own == name) return value;
    return std::string();
  };
  const Headers headers = access.cors_headers(request);
  EXPECT_EQ(header(headers, "access-control-allow-origin"), "https://page.example");
  EXPECT_EQ(header(headers, "access-control-allow-headers"), "authorization, x-stainless-lang");
  EXPECT_EQ(header(headers, "access-control-allow-methods"), "GET, POST, OPTIONS");
  EXPECT_EQ(header(headers, "access-control-allow-credentials"), "");
  EXPECT_EQ(header(headers, "vary"), "Origin");

  EXPECT_EQ(status(access, {{"host", "localhost"}, {"origin", "https://page.example"}}), 401);
  EXPECT_EQ(status(access, {{"host", "localhost"}, {"origin", "https://page.example"}, {"x-api-key", "key"}}), 0);
  EXPECT_EQ(status(access, {{"host", "localhost"}, {"origin", "https://page.example.evil"}, {"x-api-key", "key"}}), 403);
  options.allowed_origins = {"*"};
  EXPECT_EQ(status(Access(options, true), {{"host", "localhost"}, {"origin", "null"}, {"x-api-key", "key"}}), 0);
}

}  // namespace
}  // namespace couplet::server
