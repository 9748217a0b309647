#pragma once
// GET over HTTP and HTTPS by libcurl, and no more: redirects followed by hand, so that a token goes to its own origin
// alone; every wait ended by Ctrl-C; every size bounded by whoever takes the bytes. Knows no hub and no files.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "network_libraries.h"

namespace couplet::cli {

struct HttpRequest {
  std::string url;
  std::string token;         // sent as a bearer's, where the origin is `token_origin`
  std::string token_origin;  // as origin_of() gives it
  std::uint64_t from = 0;    // above 0: only the bytes from here on
  std::string if_range;      // what `from` holds for, an ETag; empty: for any
};

struct HttpAnswer {
  long status = 0;
  std::map<std::string, std::string> headers;  // lower-case names; the last of several
  std::map<std::string, std::string> passed;   // those of the redirects before it

  const std::string* header(const std::string& name) const;
  std::optional<std::uint64_t> content_length() const;
};

// Ctrl-C was pressed.
struct Interrupted {};

// What may be over when it is tried again: a broken connection, a server that is busy.
struct PassingFailure {
  std::string what;
  std::optional<std::uint64_t> wait_s;  // what the server asked for
};

class HttpClient {
 public:
  explicit HttpClient(int timeout_s);  // a connection that brings nothing for so long has failed
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Called with the answer's status and headers (never a redirect); false: its body is not wanted.
  using OnAnswer = std::function<bool(const HttpAnswer&)>;
  using OnBytes = std::function<void(std::string_view)>;
  // Either may throw, which ends the request. Throws Interrupted, PassingFailure for a failed connection and for the
  // statuses 408, 429 and 5xx, and Error for what would fail again.
  HttpAnswer get(const HttpRequest& request, const OnAnswer& on_answer, const OnBytes& on_bytes);

 private:
  class Exchange;
  HttpAnswer one_hop(const HttpRequest& request, const std::string& url, const OnAnswer& on_answer, const OnBytes& on_bytes);
  void run(Exchange& exchange);
  [[noreturn]] void fail(CURLcode code, const std::string& url, const std::string& detail) const;

  int timeout_s_;
  CURL* easy_;
  CURLM* multi_;
  bool reached_ = false;  // any server, ever
};

// "https://host" or "https://host:8443", as libcurl reads the URL; throws Error{usage} where it can't.
std::string origin_of(const std::string& url);
// `reference` as seen from `base`; empty where it is no URL.
std::string absolute_url(const std::string& base, const std::string& reference);
// Sleeps, unless Ctrl-C is pressed: then throws Interrupted.
void wait_for(std::uint64_t milliseconds);
void throw_if_interrupted();

}  // namespace couplet::cli
