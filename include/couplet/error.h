#pragma once
// What the outside world can do wrong at set-up (a file, an option, the CPU): thrown once, caught only in the
// command line's main, the HTTP handler and the bindings. What goes wrong while running is a value (request.h).

#include <stdexcept>
#include <string>

namespace couplet {

enum class ErrorKind {
  usage,        // an option or argument that makes no sense
  not_found,    // a file or name that is not there
  io,           // reading or writing failed
  format,       // a file that breaks its format's rules
  unsupported,  // a valid file that this engine can't run
  resource,     // memory, cache or processor are not enough
  template_failed,  // the chat template refused the conversation, or is broken
};

// The message is one line: "[part] what: expected ..., got ...".
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace couplet
