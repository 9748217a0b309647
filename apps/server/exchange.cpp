#include "server/exchange.h"

namespace couplet::server {

std::string_view HttpRequest::header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers)
    if (name == lower_case_name) return value;
  return "";
}

}  // namespace couplet::server
