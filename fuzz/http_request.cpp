// What a client sends: any bytes give requests or one error, the same ones however the bytes are cut into pieces.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "server/request_reader.h"

namespace {

using couplet::server::HttpRequest;
using couplet::server::RequestReader;

constexpr std::size_t kMaxHeaderBytes = 400, kMaxBodyBytes = 100;

void note(const HttpRequest& request, std::string& story) {
  COUPLET_CHECK(request.body.size() <= kMaxBodyBytes && (request.path.starts_with('/') || request.path == "*"));
  for (const std::string* text : {&request.method, &request.path, &request.query, &request.body}) story += *text + "\n";
  std::size_t header_bytes = 0;
  for (const auto& [name, value] : request.headers) {
    COUPLET_CHECK((name + value).find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
    header_bytes += name.size() + value.size();
    story.append(name).append("=").append(value).append("\n");
  }
  COUPLET_CHECK(header_bytes <= kMaxHeaderBytes);
}

// Every request that comes out, in words, and how it ended.
std::string read_in_pieces(std::string_view bytes, std::size_t piece) {
  std::string story, input;
  auto reader = std::make_unique<RequestReader>(kMaxHeaderBytes, kMaxBodyBytes);
  while (!bytes.empty()) {
    input += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (bool goes_on = true; goes_on && !input.empty();) {
      const auto before = reader->stage();
      const std::size_t size = input.size();
      const auto stage = reader->feed(input);
      if (stage == RequestReader::Stage::failed) return story + std::to_string(reader->error().status);
      goes_on = stage != before || input.size() != size;
      if (stage != RequestReader::Stage::complete) continue;
      note(reader->request(), story);
      reader = std::make_unique<RequestReader>(kMaxHeaderBytes, kMaxBodyBytes);
    }
  }
  return story + "waits";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = read_in_pieces(bytes, size + 1);
  for (const std::size_t piece : {1, 2, 7}) COUPLET_CHECK(read_in_pieces(bytes, piece) == whole);
  return 0;
}
