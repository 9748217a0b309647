#include "server/reply_head.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <ctime>

namespace couplet::server {
namespace {

constexpr std::pair<std::string_view, std::string_view> kCautious[] = {
    {"cache-control", "no-store"},
    {"x-content-type-options", "nosniff"},
    {"content-security-policy", "default-src 'none'; frame-ancestors 'none'"},
    {"referrer-policy", "no-referrer"},
    {"cross-origin-resource-policy", "same-origin"},
};

void add(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ");
  for (const char c : value) head += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  head += "\r\n";
}

}  // namespace

std::string reply_head(const HttpReply& reply, Framing framing, std::string_view connection, std::string_view request_id) {
  namespace http = boost::beast::http;
  const auto reason = http::obsolete_reason(http::int_to_status(static_cast<unsigned>(reply.status)));
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", reply.status, std::string_view(reason.data(), reason.size()));
  add(head, "date", fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", fmt::gmtime(std::time(nullptr))));
  add(head, "server", "couplet");
  add(head, "x-request-id", request_id);
  if (!reply.content_type.empty()) add(head, "content-type", reply.content_type);
  for (const auto& [name, value] : reply.headers) add(head, name, value);
  for (const auto& [name, value] : kCautious) {
    const bool is_set = std::ranges::any_of(reply.headers, [&, name = name](const auto& own) { return own.first == name; });
    if (!is_set) add(head, name, value);
  }
  if (framing == Framing::length) add(head, "content-length", std::to_string(reply.body.size()));
  if (framing == Framing::chunked) add(head, "transfer-encoding", "chunked");
  if (!connection.empty()) add(head, "connection", connection);
  return head += "\r\n";
}

}  // namespace couplet::server
