// couplet convert: a Hugging Face folder as a GGUF file.

#include <fmt/format.h>

#include <filesystem>

#include "commands.h"
#include "couplet/error.h"
#include "terminal.h"
#include "write_gguf.h"

namespace couplet::cli {

int convert_command(Arguments arguments) {
  CommandLine line("convert", "Writes a Hugging Face folder as a GGUF file, with its tokenizer and chat template.");
  WriteArguments write;
  write.add_to(line, "FOLDER", "A Hugging Face folder");
  line.option("--type", "T", "Of matrices: as-is (default), or one of " + weight_type_names(),
              [&](const std::string& text) { write.options.type = text; });
  if (!line.parse(arguments)) return 0;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(write.input, ignored))
    throw Error(ErrorKind::usage, fmt::format("[options] FOLDER: expected a folder, got the file \"{}\"; "
                                              "couplet quantize takes a GGUF file", visible(write.input)));
  return write_gguf(write);
}

}  // namespace couplet::cli
