#pragma once
// Undoes the chunked transfer coding of a request's body, whatever pieces it comes in. Our own: Boost.Beast 1.74 to 1.81
// stops the program at an assertion where a client sends the last chunk in pieces.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace couplet::server {

class ChunkedReader {
 public:
  enum class Found { more, end, bad, too_large };

  // Moves what it understands from the front of `input` to the end of `body`, which grows to `max_body_bytes` at most.
  // Trailers are read over: a field that comes behind the body was judged by nobody.
  Found feed(std::string& input, std::string& body, std::size_t max_body_bytes);

 private:
  enum class Next { size, data, data_end, trailer };
  enum class Line { none, whole, bad };

  static Line take_line(std::string_view& rest, std::string_view& line);
  bool read_size(std::string_view line);

  Next next_ = Next::size;
  std::uint64_t num_left_ = 0;  // bytes of this chunk
  std::size_t trailer_bytes_ = 0;
};

}  // namespace couplet::server
