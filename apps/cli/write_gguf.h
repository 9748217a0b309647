#pragma once
// What `quantize` and `convert` have in common: an input, an output that is made beside its name, progress, and a line that
// says what was written.

#include <string>

#include "couplet/convert.h"
#include "options.h"

namespace couplet::cli {

struct WriteArguments {
  std::string input, output;
  ConvertOptions options;
  bool json = false;
  bool quiet = false;

  void add_to(CommandLine& line, const std::string& input_name, const std::string& input_help);
};

// The exit status.
int write_gguf(const WriteArguments& arguments);

}  // namespace couplet::cli
