#pragma once
// What a client can do wrong, thrown while its request is read and caught where the reply is made; never leaves the routes.

#include <stdexcept>
#include <string>

#include "server/error_reply.h"

namespace couplet::server {

class ApiError : public std::runtime_error {
 public:
  // `param`: the field ("messages[1].content"); `code`: for programs. Empty: null.
  explicit ApiError(const std::string& message, std::string param = "", std::string code = "", int status = 400)
      : std::runtime_error(message), param_(std::move(param)), code_(std::move(code)), status_(status) {}

  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }
  int status() const { return status_; }
  HttpReply reply() const { return error_reply(status_, what(), code_, param_); }

 private:
  std::string param_, code_;
  int status_;
};

}  // namespace couplet::server
