#include "http.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>

#include "couplet/error.h"
#include "interrupt.h"

namespace couplet::cli {
namespace {

constexpr int kMostRedirects = 10;
constexpr int kPollMs = 100;  // how soon Ctrl-C is seen
constexpr long kLeastBytesPerSecond = 16;
constexpr long kReadBytes = 256L << 10;
constexpr std::size_t kMostHeaderBytes = std::size_t{256} << 10;

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// Of several variables the first that is set and not empty.
const char* first_set(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = std::getenv(name); value && *value) return value;
  return nullptr;
}

class Url {
 public:
  explicit Url(const std::string& text) : Url() { set(text); }  // where set() throws, ~Url() runs: Url() is done
  ~Url() { curl().url_cleanup(handle_); }
  Url(const Url&) = delete;
  Url& operator=(const Url&) = delete;
  void set(const std::string& text) {  // a relative one is seen from what was there
    if (curl().url_set(handle_, CURLUPART_URL, text.c_str(), 0) != CURLUE_OK)
      throw Error(ErrorKind::usage, fmt::format("[pull] \"{}\": expected a URL", text));
  }
  std::string part(CURLUPart which) const {
    char* text = nullptr;
    if (curl().url_get(handle_, which, &text, CURLU_NO_DEFAULT_PORT) != CURLUE_OK) return "";
    std::string copy = text;
    curl().free(text);
    return copy;
  }

 private:
  Url() : handle_(curl().url()) {
    if (handle_ == nullptr) throw std::bad_alloc();
  }
  CURLU* handle_;
};

class HeaderList {
 public:
  ~HeaderList() { curl().slist_free_all(list_); }
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  void add(const std::string& line) {
    curl_slist* longer = curl().slist_append(list_, line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    list_ = longer;
  }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

bool is_redirect(long status) { return status == 301 || status == 302 || status == 303 || status == 307 || status == 308; }
bool may_pass(long status) { return status == 408 || status == 429 || status >= 500; }

}  // namespace

const std::string* HttpAnswer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? nullptr : &found->second;
}

std::optional<std::uint64_t> HttpAnswer::content_length() const {
  const std::string* text = header("content-length");
  return text == nullptr ? std::nullopt : whole_number(*text);
}

// One request on the wire and its answer as it comes in. What a callback throws is kept until libcurl has returned.
class HttpClient::Exchange {
 public:
  Exchange(const OnAnswer& on_answer, const OnBytes& on_bytes) : on_answer_(on_answer), on_bytes_(on_bytes) {}

  static std::size_t take_header(char* data, std::size_t size, std::size_t count, void* self) {
    return static_cast<Exchange*>(self)->header_line({data, size * count}) ? size * count : 0;
  }
  static std::size_t take_bytes(char* data, std::size_t size, std::size_t count, void* self) {
    return static_cast<Exchange*>(self)->bytes({data, size * count}) ? size * count : 0;
  }
  // The headers are complete, even where no body came.
  bool announce() {
    if (announced_ || is_redirect(answer.status) || may_pass(answer.status)) return wanted_;
    announced_ = true;
    return wanted_ = guarded([&] { return on_answer_(answer); });
  }

  HttpAnswer answer;
  std::exception_ptr thrown;
  CURLcode code = CURLE_OK;

 private:
  template <class Action>
  bool guarded(Action action) {
    try {
      return action();
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  }
  bool header_line(std::string_view line) {
    header_bytes_ += line.size();
    if (header_bytes_ > kMostHeaderBytes)
      return guarded([]() -> bool { throw Error(ErrorKind::io, fmt::format("[pull] expected at most {} bytes of headers, got more", kMostHeaderBytes)); });
    if (line.starts_with("HTTP/")) {  // after a 100, or a proxy's own answer, another begins
      answer.headers.clear();
      const std::size_t space = std::min(line.find(' '), line.size());
      answer.status = static_cast<long>(whole_number(trimmed(line.substr(space)).substr(0, 3)).value_or(0));
    } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
      answer.headers[lower(line.substr(0, colon))] = trimmed(line.substr(colon + 1));
    }
    return true;
  }
  bool bytes(std::string_view data) {
    return announce() && guarded([&] { return on_bytes_(data), true; });
  }

  const OnAnswer& on_answer_;
  const OnBytes& on_bytes_;
  std::size_t header_bytes_ = 0;
  bool announced_ = false, wanted_ = false;
};

HttpClient::HttpClient(int timeout_s)
    : timeout_s_(timeout_s), easy_(curl().easy_init()), multi_(curl().multi_init()) {
  if (easy_ == nullptr || multi_ == nullptr) throw std::bad_alloc();
}

HttpClient::~HttpClient() {
  curl().easy_cleanup(easy_);
  curl().multi_cleanup(multi_);
}

void HttpClient::fail(CURLcode code, const std::string& url, const std::string& detail) const {
  const std::string what = fmt::format("{}: {}", origin_of(url), detail);
  const bool unreachable = code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_PROXY;
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      if (reached_ || !unreachable) throw PassingFailure{what, std::nullopt};
      [[fallthrough]];
    default: throw Error(ErrorKind::io, "[pull] " + what);
  }
}

void HttpClient::run(Exchange& exchange) {
  const Curl& c = curl();
  if (c.multi_add_handle(multi_, easy_) != CURLM_OK) throw Error(ErrorKind::resource, "[pull] libcurl: no request can be made");
  const auto removed = [&](CURL* easy) { c.multi_remove_handle(multi_, easy); };
  const std::unique_ptr<CURL, decltype(removed)> guard(easy_, removed);
  for (int running = 1; running > 0;) {
    if (c.multi_perform(multi_, &running) != CURLM_OK) throw Error(ErrorKind::resource, "[pull] libcurl: the request failed");
    throw_if_interrupted();
    if (running > 0) c.multi_poll(multi_, nullptr, 0, kPollMs, nullptr);
  }
  int left = 0;
  while (const CURLMsg* message = c.multi_info_read(multi_, &left))
    if (message->msg == CURLMSG_DONE) exchange.code = message->data.result;
}

HttpAnswer HttpClient::one_hop(const HttpRequest& request, const std::string& url, const OnAnswer& on_answer, const OnBytes& on_bytes) {
  const Curl& c = curl();
  const auto set = [&](CURLoption option, auto value) {
    if (c.easy_setopt(easy_, option, value) != CURLE_OK)
      throw Error(ErrorKind::unsupported, fmt::format("[pull] libcurl.so.4: it has no option {}", static_cast<int>(option)));
  };
  HeaderList headers;
  if (!request.token.empty() && origin_of(url) == request.token_origin) headers.add("Authorization: Bearer " + request.token);
  if (request.from > 0) headers.add(fmt::format("Range: bytes={}-", request.from));
  if (request.from > 0 && !request.if_range.empty()) headers.add("If-Range: " + request.if_range);
  Exchange exchange(on_answer, on_bytes);
  std::array<char, CURL_ERROR_SIZE> detail{};
  c.easy_reset(easy_);
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTPHEADER, headers.get());
  set(CURLOPT_USERAGENT, "couplet/" COUPLET_VERSION);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // after Ctrl-C a name that is still being looked up is not waited for
  set(CURLOPT_BUFFERSIZE, kReadBytes);
  set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(timeout_s_));
  set(CURLOPT_LOW_SPEED_LIMIT, kLeastBytesPerSecond);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(timeout_s_));
  set(CURLOPT_ERRORBUFFER, detail.data());
  set(CURLOPT_HEADERFUNCTION, &Exchange::take_header);
  set(CURLOPT_HEADERDATA, &exchange);
  set(CURLOPT_WRITEFUNCTION, &Exchange::take_bytes);
  set(CURLOPT_WRITEDATA, &exchange);
  // libcurl itself reads only its proxies from the environment.
  if (const char* file = first_set({"CURL_CA_BUNDLE", "SSL_CERT_FILE"})) set(CURLOPT_CAINFO, file);
  if (const char* folder = first_set({"SSL_CERT_DIR"})) set(CURLOPT_CAPATH, folder);
  run(exchange);
  if (exchange.answer.status != 0) reached_ = true;
  if (exchange.code == CURLE_OK) exchange.announce();
  if (exchange.thrown) std::rethrow_exception(exchange.thrown);
  HttpAnswer& answer = exchange.answer;
  if (may_pass(answer.status)) {
    const std::string* wait = answer.header("retry-after");
    throw PassingFailure{fmt::format("{} answered {}", origin_of(url), answer.status), wait ? whole_number(*wait) : std::nullopt};
  }
  // A body that nobody wanted, a redirect's too, was cut off.
  if (exchange.code != CURLE_OK && exchange.code != CURLE_WRITE_ERROR)
    fail(exchange.code, url, detail[0] != '\0' ? detail.data() : c.easy_strerror(exchange.code));
  return std::move(answer);
}

HttpAnswer HttpClient::get(const HttpRequest& request, const OnAnswer& on_answer, const OnBytes& on_bytes) {
  std::string url = request.url;
  std::map<std::string, std::string> passed;
  for (int hop = 0; hop <= kMostRedirects; ++hop) {
    const OnAnswer with_passed = [&](const HttpAnswer& answer) {
      HttpAnswer whole = answer;
      whole.passed = passed;
      return on_answer(whole);
    };
    HttpAnswer answer = one_hop(request, url, with_passed, on_bytes);
    if (!is_redirect(answer.status)) return answer;
    const std::string* location = answer.header("location");
    const std::string next = location == nullptr ? "" : absolute_url(url, *location);
    const bool is_secure = url.starts_with("https:");
    if (!next.starts_with("https:") && (is_secure || !next.starts_with("http:")))
      throw Error(ErrorKind::io, fmt::format("[pull] {}: expected a redirect to {}, got one to {}", origin_of(url),
                                             is_secure ? "https" : "http or https", next.empty() ? "nowhere" : origin_of(next)));
    url = next;
    passed.merge(answer.headers);
  }
  throw Error(ErrorKind::io, fmt::format("[pull] {}: expected at most {} redirects, got more", origin_of(request.url), kMostRedirects));
}

std::string origin_of(const std::string& url) {
  const Url parsed(url);
  const std::string port = parsed.part(CURLUPART_PORT);
  return fmt::format("{}://{}{}{}", lower(parsed.part(CURLUPART_SCHEME)), lower(parsed.part(CURLUPART_HOST)), port.empty() ? "" : ":", port);
}

std::string absolute_url(const std::string& base, const std::string& reference) {
  try {
    Url url(base);
    url.set(reference);
    return url.part(CURLUPART_URL);
  } catch (const Error&) {
    return "";
  }
}

void wait_for(std::uint64_t milliseconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  for (throw_if_interrupted(); std::chrono::steady_clock::now() < end; throw_if_interrupted())
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min<std::uint64_t>(kPollMs, milliseconds)));
}

void throw_if_interrupted() {
  if (InterruptScope::interrupted()) throw Interrupted{};
}

}  // namespace couplet::cli
