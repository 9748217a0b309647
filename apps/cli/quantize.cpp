// couplet quantize: a checkpoint as a GGUF file with its matrices in a smaller type.

#include "commands.h"
#include "couplet/error.h"
#include "write_gguf.h"

namespace couplet::cli {

int quantize_command(Arguments arguments) {
  CommandLine line("quantize", "Writes a model as a GGUF file with its matrices in another type.");
  WriteArguments write;
  write.options.type.clear();
  write.add_to(line, "IN", "A GGUF file, a Hugging Face folder, or a catalogue name");
  line.option("--type", "T", "One of " + weight_type_names(),
              [&](const std::string& text) { write.options.type = parse_weight_type("--type", text); });
  if (!line.parse(arguments)) return 0;
  if (write.options.type.empty())
    throw Error(ErrorKind::usage, "[options] --type: expected one of " + weight_type_names() + ", got none");
  return write_gguf(write);
}

}  // namespace couplet::cli
