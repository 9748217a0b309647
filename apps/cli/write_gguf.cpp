#include "write_gguf.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "catalogue.h"
#include "interrupt.h"
#include "generate.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

constexpr int kMostThreads = 1024;

void show(const WriteArguments& arguments, const ConvertSummary& summary, double seconds) {
  if (arguments.json) {
    nlohmann::ordered_json json = {{"output", arguments.output},
                                   {"input_bytes", summary.input_bytes},
                                   {"output_bytes", summary.output_bytes},
                                   {"seconds", seconds}};
    for (const TensorTypeSummary& type : summary.tensor_types)
      json["tensors"].push_back({{"type", type.type}, {"count", type.count}, {"bytes", type.bytes}});
    return print(dump_line(json));
  }
  std::string types;
  for (const TensorTypeSummary& type : summary.tensor_types)
    types += fmt::format("{}{} x {}", types.empty() ? "" : ", ", type.count, type.type);
  note(fmt::format("{}: {} ({}), from {} in {:.1f} s", visible(arguments.output), amount(summary.output_bytes), types,
                   amount(summary.input_bytes), seconds));
}

}  // namespace

void WriteArguments::add_to(CommandLine& line, const std::string& input_name, const std::string& input_help) {
  line.positional(input_name, input, input_help);
  line.positional("OUT", output, "The GGUF file to write; it has its name when it is whole");
  line.integer("--threads", options.num_threads, 1, kMostThreads, "At most as many as the system has CPUs for us; default: so many");
  line.flag("--force", options.replace, "OUT may be there, and is replaced");
  line.flag("--allow-requantize", options.allow_requantize, "Quantize weights again that are quantized, at a loss");
  line.flag("--json", json, "Answer in JSON");
  line.flag("--quiet", quiet, "Nothing on stderr but errors");
}

int write_gguf(const WriteArguments& arguments) {
  if (arguments.quiet) set_quiet();
  const InterruptScope scope;
  const auto began = std::chrono::steady_clock::now();
  ConvertOptions options = arguments.options;
  options.progress = [](std::uint64_t done, std::uint64_t total) {
    show_progress(fmt::format("{} of {} written", amount(done), amount(total)));
    return !InterruptScope::interrupted();
  };
  const ConvertSummary summary = convert_checkpoint(resolve_model(arguments.input), arguments.output, options);
  show_progress("");
  if (!summary.finished) return kInterruptedStatus;
  show(arguments, summary, std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  return 0;
}

}  // namespace couplet::cli
