#pragma once
// One line from the user: edited, with history, on a terminal (libedit); as it comes from a pipe.

#include <optional>
#include <string>

#include "json_lines.h"

struct editline;
struct history;

namespace couplet::cli {

class LineEditor {
 public:
  explicit LineEditor(std::string prompt);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Without its newline; from a pipe never blank. Throws Error{io} where a pipe can't be read. nullopt: the end (Ctrl-D, end of input). Ctrl-C gives the line up and begins a new
  // one.
  std::optional<std::string> next();

 private:
  std::string prompt_;
  LineReader plain_;
  editline* editor_ = nullptr;  // null: standard input is no terminal
  history* history_ = nullptr;
};

}  // namespace couplet::cli
