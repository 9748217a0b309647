#include "server/chunked_reader.h"

#include <algorithm>
#include <charconv>

namespace couplet::server {
namespace {

constexpr std::size_t kMaxLineBytes = 4096;  // a chunk's size with its extensions; all trailers together
constexpr std::size_t kMaxSizeDigits = 16;

}  // namespace

ChunkedReader::Found ChunkedReader::feed(std::string& input, std::string& body, std::size_t max_body_bytes) {
  std::string_view rest = input, line;
  Found found = Found::more;
  for (bool goes_on = true; goes_on && found == Found::more;) {
    if (next_ == Next::data) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(num_left_, rest.size()));
      body += rest.substr(0, count);
      rest.remove_prefix(count);
      num_left_ -= count;
      goes_on = num_left_ == 0;
      if (goes_on) next_ = Next::data_end;
      continue;
    }
    const Line read = take_line(rest, line);
    if (read == Line::bad) found = Found::bad;
    goes_on = read == Line::whole;
    if (!goes_on) break;
    if (next_ == Next::size) {
      if (!read_size(line)) found = Found::bad;
      else if (num_left_ > max_body_bytes - body.size()) found = Found::too_large;
      next_ = num_left_ > 0 ? Next::data : Next::trailer;
    } else if (next_ == Next::data_end) {
      if (!line.empty()) found = Found::bad;
      next_ = Next::size;
    } else {
      trailer_bytes_ += line.size();
      if (trailer_bytes_ > kMaxLineBytes) found = Found::bad;
      if (line.empty()) found = Found::end;
    }
  }
  input.erase(0, input.size() - rest.size());
  return found;
}

// A line ends in CR LF and holds text alone.
ChunkedReader::Line ChunkedReader::take_line(std::string_view& rest, std::string_view& line) {
  const auto is_control = [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; };
  const auto end = static_cast<std::size_t>(std::ranges::find_if(rest, is_control) - rest.begin());
  if (end > kMaxLineBytes) return Line::bad;
  if (end == rest.size() || (rest[end] == '\r' && end + 1 == rest.size())) return Line::none;
  if (rest.substr(end, 2) != "\r\n") return Line::bad;
  line = rest.substr(0, end);
  rest.remove_prefix(end + 2);
  return Line::whole;
}

// "1a", or "1a;name=value", whose extensions mean nothing here.
bool ChunkedReader::read_size(std::string_view line) {
  const std::size_t num_digits = std::min(line.find_first_of("; \t"), line.size());
  const std::string_view behind = line.substr(std::min(line.find_first_not_of(" \t", num_digits), line.size()));
  const auto [end, error] = std::from_chars(line.data(), line.data() + num_digits, num_left_, 16);
  return num_digits > 0 && num_digits <= kMaxSizeDigits && error == std::errc() && end == line.data() + num_digits &&
         (behind.empty() || behind[0] == ';');
}

}  // namespace couplet::server
