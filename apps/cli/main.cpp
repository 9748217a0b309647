// The program `couplet`: picks the subcommand and turns what it throws into one line and an exit status.

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "commands.h"
#include "couplet/chat_template.h"
#include "couplet/error.h"
#include "interrupt.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

constexpr int kDone = 0, kFailed = 1, kWrongUse = 2;

struct Command {
  std::string_view name, arguments, about;
  int (*run)(Arguments);
};

constexpr Command kCommands[] = {
    {"run", "MODEL [PROMPT]", "One prompt, the reply as it grows", run_command},
    {"chat", "MODEL", "A conversation", chat_command},
    {"explain", "MODEL [PROMPT]", "What prefill and decode do, step by step", explain_command},
    {"tokenize", "MODEL [TEXT]", "Text to tokens, and back", tokenize_command},
    {"score", "MODEL [FILE]", "The probability of given text", score_command},
    {"template", "MODEL [FILE]", "Conversations through the chat template", template_command},
    {"inspect", "MODEL", "What a model file holds", inspect_command},
    {"bench", "MODEL", "Prefill and decode speed against the machine's limits", bench_command},
    {"serve", "MODEL", "An HTTP server that speaks OpenAI's API", serve_command},
    {"quantize", "IN OUT", "A model as a GGUF file with smaller weights", quantize_command},
    {"convert", "FOLDER OUT", "A Hugging Face folder as a GGUF file", convert_command},
    {"pull", "NAME", "Gets a model: of the catalogue, hf.co/OWNER/NAME[:FILE], or a URL", pull_command},
    {"list", "", "The models that were pulled", list_command},
    {"rm", "NAME", "Removes a model that was pulled", rm_command},
};

std::string usage() {
  std::string text =
      "couplet turns a prompt into text in two stages: prefill reads the whole prompt at once,\n"
      "decode adds one token at a time.\n\n"
      "Usage: couplet COMMAND ...\n\n";
  for (const Command& command : kCommands)
    text += fmt::format("  {:<9} {:<15} {}\n", command.name, command.arguments, command.about);
  return text +
         "\nMODEL is a GGUF file, a Hugging Face folder, a catalogue name (smollm2, gemma3) or what was pulled\n"
         "(hf.co/OWNER/NAME).\n"
         "couplet COMMAND --help lists the options; couplet --version prints the version.\n";
}

int dispatch(Arguments arguments) {
  const std::string name = arguments.empty() ? "" : arguments[0];
  if (name == "--help" || name == "-h" || name == "help") return print(usage()), kDone;
  if (name == "--version") return print("couplet " COUPLET_VERSION "\n"), kDone;
  for (const Command& command : kCommands) {
    if (command.name == name) return command.run(arguments.subspan(1));
  }
  throw Error(ErrorKind::usage, fmt::format("[couplet] expected a command, got {}; see couplet --help",
                                            name.empty() ? "none" : fmt::format("\"{}\"", name)));
}

int failed(std::string_view message, int status) {
  show_error("couplet: " + visible(message));
  return status;
}

// The answer's last bytes are written here, so that a full disk is a failure too.
int run(Arguments arguments) {
  try {
    int status = kFailed;
    try {
      status = dispatch(arguments);
    } catch (...) {
      flush();  // what was answered before it failed
      throw;
    }
    flush();
    return status;
  } catch (const ReaderLeft&) {
    return kDone;
  } catch (const Error& error) {
    return failed(error.what(), error.kind() == ErrorKind::usage ? kWrongUse : kFailed);
  } catch (const Fault& fault) {
    return failed(fmt::format("a fault of couplet's own, please report it: {}", fault.what()), kFailed);
  } catch (const std::bad_alloc&) {
    return failed("[memory] the system has no more", kFailed);
  } catch (const std::exception& error) {
    return failed(fmt::format("a fault of couplet's own, please report it: {}", error.what()), kFailed);
  }
}

// A mapped file that grew shorter has no bytes to give: nothing can go on, and only this much may be called.
void on_missing_bytes(int) {
  constexpr std::string_view kMessage = "couplet: the model file changed while it was read\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(kFailed);
}

}  // namespace

void install_missing_bytes_handler() {
  struct sigaction action{};
  action.sa_handler = on_missing_bytes;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace couplet::cli

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "template-worker") return couplet::ChatTemplate::worker_main();
  std::signal(SIGPIPE, SIG_IGN);
  couplet::cli::install_interrupt_handler();
  couplet::cli::install_missing_bytes_handler();
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return couplet::cli::run(arguments);
}
