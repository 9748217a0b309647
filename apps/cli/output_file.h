#pragma once
// Files that a command writes beside its answer: --html, --trace.

#include <string>

#include "options.h"

namespace couplet::cli {

struct OutputFile {
  std::string option;  // "--html"
  std::string path;    // empty: not asked for

  bool wanted() const { return !path.empty(); }
  void add_to(CommandLine& line, const std::string& help);
  // Before anything is run: throws Error{usage} for something that is no file, or is there and not to be replaced.
  void check(bool replace) const;
};

// --force, which goes with them.
void add_force(CommandLine& line, bool& force);

}  // namespace couplet::cli
