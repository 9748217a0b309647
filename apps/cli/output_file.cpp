#include "output_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "terminal.h"

namespace couplet::cli {

void OutputFile::add_to(CommandLine& line, const std::string& help) {
  line.option(option, "FILE", help, [this](const std::string& text) {
    if (text.empty()) throw Error(ErrorKind::usage, fmt::format("[options] {}: expected a file, got \"\"", option));
    path = text;
  });
}

void OutputFile::check(bool replace) const {
  std::error_code ignored;
  if (!wanted() || !std::filesystem::exists(path, ignored)) return;
  const auto refuse = [this](const char* what) {
    throw Error(ErrorKind::usage, fmt::format("[options] {}: \"{}\": {}", option, visible(path), what));
  };
  if (!std::filesystem::is_regular_file(path, ignored)) refuse("expected a file to write, got something else");
  if (!replace) refuse("expected no file of this name, there is one; --force replaces it");
}

void add_force(CommandLine& line, bool& force) {
  line.flag("--force", force, "The FILE to write may be there, and is replaced");
}

}  // namespace couplet::cli
