#pragma once
// Errors in OpenAI's form, {"error": {"message", "type", "param", "code"}}: the one way in which the server says no.

#include <string>
#include <string_view>

#include "server/exchange.h"

namespace couplet::server {

// One line that says what was expected and what came; `param` names the field of the request, `code` is for programs.
// Empty ones are null in JSON.
std::string error_json(int status, std::string_view message, std::string_view code = "", std::string_view param = "");
HttpReply error_reply(int status, std::string_view message, std::string_view code = "", std::string_view param = "");

}  // namespace couplet::server
