#include "server/request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cctype>
#include <charconv>
#include <cstdint>

#include "server/chunked_reader.h"
#include "server/error_reply.h"

namespace couplet::server {
namespace {

namespace http = boost::beast::http;
using Stage = RequestReader::Stage;

constexpr std::size_t kMaxTargetBytes = 8192;
constexpr std::size_t kMaxMethodBytes = 64;

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

// Valid UTF-8 without control characters.
bool is_plain_text(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x20 || lead == 0x7f) return false;
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    if (length == 0 || i + length > text.size()) return false;
    const auto is_continuation = [](unsigned char c) { return (c & 0xc0) == 0x80; };
    if (!std::ranges::all_of(text.substr(i + 1, length - 1), is_continuation)) return false;
    const auto second = static_cast<unsigned char>(length > 1 ? text[i + 1] : 0);
    if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) || (lead == 0xf0 && second < 0x90) ||
        (lead == 0xf4 && second > 0x8f))
      return false;
    i += length;
  }
  return true;
}

// Finds the end of a head, each byte looked at once, and refuses what the parser would take too kindly.
class HeadScanner {
 public:
  enum class Found { more, end, bad };

  Found scan(std::string_view input) {
    for (; at_ < input.size(); ++at_) {
      const auto c = static_cast<unsigned char>(input[at_]);
      const bool after_cr = at_ > 0 && input[at_ - 1] == '\r';
      if (after_cr != (c == '\n')) return Found::bad;  // lines end in CR LF alone
      if (c == '\n') {
        if (at_ - line_ == 1) return ++at_, Found::end;
        line_ = at_ + 1;
        ++num_lines_;
      } else if ((c < 0x20 && c != '\r' && c != '\t') || c == 0x7f) {
        return Found::bad;
      } else if (at_ == line_ && (c == ' ' || c == '\t')) {
        return Found::bad;  // a folded line, or blanks before the first
      }
    }
    return Found::more;
  }
  std::size_t size() const { return at_; }
  bool in_first_line() const { return num_lines_ == 0; }

 private:
  std::size_t at_ = 0, line_ = 0, num_lines_ = 0;
};

}  // namespace

bool percent_decode(std::string_view text, std::string& decoded) {
  decoded.clear();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) return false;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return true;
}

struct RequestReader::State {
  State(std::size_t header_bytes, std::size_t body_bytes) : max_header_bytes(header_bytes), max_body_bytes(body_bytes) {
    // The head is whole and short enough before the parser sees it; the body it never sees.
    parser.header_limit(static_cast<std::uint32_t>(std::min<std::size_t>(header_bytes, 1U << 30)));
    parser.body_limit(UINT64_MAX);
    parser.eager(false);
  }

  std::size_t max_header_bytes, max_body_bytes;
  Stage stage = Stage::empty;
  HeadScanner scanner;
  http::request_parser<http::empty_body> parser;  // of the head
  HttpRequest request;
  HttpReply error;
  bool expects_continue = false;
  bool is_chunked = false;
  ChunkedReader chunked;
  std::uint64_t num_left = 0;  // bytes of a body that is not chunked

  void fail(int status, std::string_view message, std::string_view code = "") {
    stage = Stage::failed;
    error = error_reply(status, message, code);
  }
  void read_head(std::string& input);
  void scan_head(std::string& input);
  void parse_head(std::string_view head);
  void copy_head();
  bool check_framing();
  bool check_length();
  bool split_target();
  void take_authority(std::string_view& target);
  void read_body(std::string& input);
  void fail_too_large();
  void fail_with(const boost::beast::error_code& code);
};

void RequestReader::State::read_head(std::string& input) {
  if (stage == Stage::empty) {  // empty lines before a request are allowed
    std::size_t blank = 0;
    while (input.compare(blank, 2, "\r\n") == 0) blank += 2;
    input.erase(0, blank);
    if (input.empty() || input == "\r") return;
    stage = Stage::head;
  }
  switch (scanner.scan(input)) {
    case HeadScanner::Found::bad:
      return fail(400, fmt::format("[http] head: expected lines of text that end in CR LF, got another byte at offset {}",
                                   scanner.size()));
    case HeadScanner::Found::end:
      if (scanner.size() > max_header_bytes) break;
      parse_head(std::string_view(input).substr(0, scanner.size()));
      if (stage != Stage::failed) input.erase(0, scanner.size());
      return;
    case HeadScanner::Found::more:
      if (scanner.in_first_line() && input.size() > kMaxTargetBytes + kMaxMethodBytes)
        return fail(414, fmt::format("[http] target: expected at most {} bytes, got more", kMaxTargetBytes), "uri_too_long");
      if (input.size() <= max_header_bytes) return;
      break;
  }
  fail(431, fmt::format("[http] headers: expected at most {} bytes, got more", max_header_bytes), "headers_too_large");
}

void RequestReader::State::parse_head(std::string_view head) {
  boost::beast::error_code code;
  parser.put(boost::asio::const_buffer(head.data(), head.size()), code);
  if (!code && !parser.is_header_done()) code = http::error::partial_message;
  if (code) return fail_with(code);
  copy_head();
  if (!check_framing() || !check_length() || !split_target()) return;
  stage = num_left > 0 || is_chunked ? Stage::body : Stage::complete;
}

void RequestReader::State::copy_head() {
  const auto& head = parser.get();
  request.method = std::string(view(head.method_string()));
  for (const auto& field : head) request.headers.emplace_back(lower(view(field.name_string())), std::string(view(field.value())));
}

// One Host, and a length with one meaning only.
bool RequestReader::State::check_framing() {
  int num_lengths = 0, num_encodings = 0, num_hosts = 0;
  for (const auto& [name, value] : request.headers) {
    num_lengths += name == "content-length" ? 1 : 0;
    num_encodings += name == "transfer-encoding" ? 1 : 0;
    num_hosts += name == "host" ? 1 : 0;
  }
  const bool is_1_0 = parser.get().version() < 11;
  is_chunked = num_encodings > 0;
  if (num_lengths + num_encodings > 1 || (is_chunked && is_1_0))
    return fail(400, "[http] length: expected one Content-Length or, in HTTP/1.1, one Transfer-Encoding, got both or more"), false;
  if (is_chunked && lower(request.header("transfer-encoding")) != "chunked")
    return fail(501, "[http] Transfer-Encoding: expected chunked, got another one"), false;
  if (num_hosts > 1 || (num_hosts == 0 && !is_1_0))
    return fail(400, fmt::format("[http] Host: expected one, got {}", num_hosts)), false;
  return true;
}

bool RequestReader::State::check_length() {
  if (const std::string_view text = request.header("content-length"); !is_chunked && !text.empty()) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), num_left);
    if (error != std::errc() || end != text.data() + text.size())
      return fail(400, "[http] Content-Length: expected one number, got something else"), false;
  }
  if (num_left > max_body_bytes) return fail_too_large(), false;
  const std::string expectation = lower(request.header("expect"));
  if (expectation.empty() || parser.get().version() < 11) return true;
  if (expectation != "100-continue") return fail(417, "[http] Expect: expected 100-continue, got something else"), false;
  expects_continue = true;
  return true;
}

bool RequestReader::State::split_target() {
  std::string_view target = view(parser.get().target());
  if (target.size() > kMaxTargetBytes)
    return fail(414, fmt::format("[http] target: expected at most {} bytes, got {}", kMaxTargetBytes, target.size()), "uri_too_long"),
           false;
  take_authority(target);
  const std::size_t question = std::min(target.find('?'), target.size());
  const bool has_form = target.starts_with('/') || (target == "*" && request.method == "OPTIONS");
  const bool is_ascii = std::ranges::all_of(target, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (!has_form || !is_ascii || !percent_decode(target.substr(0, question), request.path) || !is_plain_text(request.path))
    return fail(400, "[http] target: expected a path of percent-encoded UTF-8, got something else"), false;
  if (question < target.size()) request.query = std::string(target.substr(question + 1));
  return true;
}

// "http://host/path", as sent to proxies: its host goes before that of the header.
void RequestReader::State::take_authority(std::string_view& target) {
  const std::string start = lower(target.substr(0, 8));
  const std::size_t scheme = start.starts_with("http://") ? 7 : start == "https://" ? 8 : 0;
  if (scheme == 0) return;
  const std::size_t end = std::min(target.find_first_of("/?", scheme), target.size());
  const std::string host(target.substr(scheme, end - scheme));
  std::erase_if(request.headers, [](const auto& header) { return header.first == "host"; });
  request.headers.emplace_back("host", host);
  target = end == target.size() ? "/" : target.substr(end);
}

void RequestReader::State::read_body(std::string& input) {
  if (!is_chunked) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(num_left, input.size()));
    request.body.append(input, 0, count);
    input.erase(0, count);
    num_left -= count;
    if (num_left == 0) stage = Stage::complete;
    return;
  }
  switch (chunked.feed(input, request.body, max_body_bytes)) {
    case ChunkedReader::Found::more: return;
    case ChunkedReader::Found::end: stage = Stage::complete; return;
    case ChunkedReader::Found::too_large: return fail_too_large();
    case ChunkedReader::Found::bad: return fail(400, "[http] chunk: expected a size in hexadecimal and so many bytes, got something else");
  }
}

void RequestReader::State::fail_too_large() {
  fail(413, fmt::format("[http] body: expected at most {} bytes, got more", max_body_bytes), "body_too_large");
}

void RequestReader::State::fail_with(const boost::beast::error_code& code) {
  if (code == http::error::bad_version) return fail(505, "[http] version: expected HTTP/1.0 or HTTP/1.1, got another one");
  fail(400, fmt::format("[http] expected a request of HTTP/1.1, got: {}", code.message()));
}

RequestReader::RequestReader(std::size_t max_header_bytes, std::size_t max_body_bytes)
    : state_(std::make_unique<State>(max_header_bytes, max_body_bytes)) {}
RequestReader::~RequestReader() = default;

RequestReader::Stage RequestReader::feed(std::string& input) {
  if (state_->stage <= Stage::head) {
    state_->read_head(input);
  } else if (state_->stage == Stage::body) {
    state_->read_body(input);
  }
  return state_->stage;
}

RequestReader::Stage RequestReader::stage() const { return state_->stage; }
HttpRequest& RequestReader::request() { return state_->request; }
const HttpReply& RequestReader::error() const { return state_->error; }
bool RequestReader::keeps_alive() const { return state_->parser.is_header_done() && state_->parser.get().keep_alive(); }
bool RequestReader::is_http_1_0() const { return state_->parser.is_header_done() && state_->parser.get().version() < 11; }
bool RequestReader::expects_continue() const { return state_->expects_continue; }
std::size_t RequestReader::body_bytes() const { return state_->request.body.size(); }

}  // namespace couplet::server
