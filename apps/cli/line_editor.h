#pragma once
// One line from the user: edited, with history, on a terminal (libedit); as it comes from a pipe.

#include <optional>
#include <string>

struct editline;
struct history;

namespace couplet::cli {

class LineEditor {
 public:
  explicit LineEditor(std::string prompt);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Without its newline. nullopt: the end (Ctrl-D, end of input). Ctrl-C gives the line up and begins a new
  // one.
  std::optional<std::string> next();

 private:
  std::optional<std::string> next_plain();

  std::string prompt_;
  editline* editor_ = nullptr;  // null: standard input is no terminal
  history* history_ = nullptr;
};

}  // namespace couplet::cli
