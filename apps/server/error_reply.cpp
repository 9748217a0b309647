#include "server/error_reply.h"

#include <nlohmann/json.hpp>

namespace couplet::server {
namespace {

const char* type_of(int status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

}  // namespace

std::string error_json(int status, std::string_view message, std::string_view code, std::string_view param) {
  using Json = nlohmann::ordered_json;
  const auto text_or_null = [](std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); };
  const Json json = {{"error",
                      {{"message", message},
                       {"type", type_of(status)},
                       {"param", text_or_null(param)},
                       {"code", text_or_null(code)}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HttpReply error_reply(int status, std::string_view message, std::string_view code, std::string_view param) {
  HttpReply reply;
  reply.status = status;
  reply.body = error_json(status, message, code, param);
  return reply;
}

}  // namespace couplet::server
