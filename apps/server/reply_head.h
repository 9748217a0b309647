#pragma once
// The head of a reply as bytes.

#include <string>
#include <string_view>

#include "server/exchange.h"

namespace couplet::server {

enum class Framing { none, length, chunked, until_close };

// `connection`: "close", "keep-alive" or "". Headers that a reply does not set itself get cautious values: nothing of
// it is stored, framed, or taken for another type. No byte of a header can end its line.
std::string reply_head(const HttpReply& reply, Framing framing, std::string_view connection, std::string_view request_id);

}  // namespace couplet::server
