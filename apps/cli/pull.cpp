#include "pull.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "couplet/error.h"
#include "digest.h"
#include "http.h"
#include "interrupt.h"
#include "terminal.h"

extern char** environ;
extern "C" const char couplet_pull_script[];  // pull_script.py

namespace couplet::cli {
namespace {

namespace fs = std::filesystem;

std::string entry_as_json(const CatalogueEntry& entry, bool quiet) {
  nlohmann::json requirements = {entry.terms.requirement}, parts = nlohmann::json::array();
  for (const PackagedFile& part : entry.parts) {
    if (part.requirement != entry.terms.requirement) requirements.push_back(part.requirement);
    parts.push_back(part.member);
  }
  return nlohmann::json{{"name", entry.name},
                        {"requirements", requirements},
                        {"parts", parts},
                        {"sha256", entry.sha256},
                        {"model_bytes", entry.model_bytes},
                        {"download_bytes", entry.download_bytes},
                        {"terms", entry.terms.member},
                        {"terms_suffix", entry.terms_suffix},
                        {"quiet", quiet}}
      .dump();
}

// While the script runs, Ctrl-C is its to answer: it cleans up, and its status says so.
class InterruptLeftToScript {
 public:
  InterruptLeftToScript() { before_ = signal(SIGINT, SIG_IGN); }
  ~InterruptLeftToScript() { signal(SIGINT, before_); }
  InterruptLeftToScript(const InterruptLeftToScript&) = delete;
  InterruptLeftToScript& operator=(const InterruptLeftToScript&) = delete;

 private:
  void (*before_)(int);
};

std::string read_all(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

struct ScriptResult {
  int status = 0;  // the script's exit status, 128 + n when signal n ended it
  std::string output;
};

ScriptResult run_script(const std::string& entry_json, const std::string& folder) {
  std::array<int, 2> pipe_ends;
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
    throw Error(ErrorKind::resource, fmt::format("[pull] pipe: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &interrupt);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const std::array<const char*, 6> arguments = {"python3", "-c", couplet_pull_script, entry_json.c_str(),
                                                folder.c_str(), nullptr};
  const InterruptLeftToScript guard;
  pid_t child = 0;
  const int failed = posix_spawnp(&child, "python3", &actions, &attributes,
                                  const_cast<char* const*>(arguments.data()), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(pipe_ends[1]);
  ScriptResult result;
  if (failed == 0) result.output = read_all(pipe_ends[0]);
  close(pipe_ends[0]);
  if (failed == ENOENT)
    throw Error(ErrorKind::not_found, "[pull] needs python3 with pip (Debian: apt-get install python3-pip)");
  if (failed != 0) throw Error(ErrorKind::resource, fmt::format("[pull] python3: {}", std::strerror(failed)));
  int wait_status = 0;
  while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
  }
  result.status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  return result;
}

fs::path model_path(const CatalogueEntry& entry, const fs::path& folder) { return folder / (std::string(entry.name) + ".gguf"); }

void say_where(const CatalogueEntry& entry, const fs::path& folder, std::string_view what, bool json) {
  const fs::path terms = folder / (std::string(entry.name) + std::string(entry.terms_suffix));
  std::error_code ignored;
  note(fmt::format("{}: {}: {} ({}{})", entry.name, what, model_path(entry, folder).string(), entry.licence,
                   fs::exists(terms, ignored) ? ": " + terms.string() : ""));
  if (json)
    print(nlohmann::ordered_json{{"name", entry.name},
                                 {"path", model_path(entry, folder).string()},
                                 {"bytes", entry.model_bytes},
                                 {"state", what},
                                 {"sha256", entry.sha256}}
              .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
          "\n");
}

}  // namespace

int pull_model(const CatalogueEntry& entry, const fs::path& folder, const PullOptions& options) {
  const bool there = verified_as(model_path(entry, folder)) == entry.sha256;
  if (!there) {
    const ScriptResult result = run_script(entry_as_json(entry, options.quiet), folder.string());
    if (result.status == kInterruptedStatus) return kInterruptedStatus;
    if (result.status != 0) {
      const std::string reason = result.output.substr(0, result.output.find('\n'));
      throw Error(ErrorKind::io, fmt::format("[pull] {}: {}", entry.name, reason.empty() ? "its helper process was ended" : reason));
    }
  }
  say_where(entry, folder, there ? "already there" : "verified", options.json);
  return 0;
}

int run_pull(const std::vector<std::string>& names, const PullOptions& options) {
  constexpr std::string_view kExpected = "hf.co/OWNER/NAME[:FILE], a URL, or a name of the catalogue";
  if (names.empty()) throw Error(ErrorKind::usage, fmt::format("[pull] expected {} ({}), got none", kExpected, catalogue_names()));
  for (const std::string& name : names) {
    const auto remote = parse_remote_name(name);
    if (!remote && !find_in_catalogue(name))
      throw Error(ErrorKind::not_found, fmt::format("[pull] \"{}\" is not in the catalogue ({}), nor is it hf.co/OWNER/NAME or a URL",
                                                    name, catalogue_names()));
    if (!options.sha256.empty() && (names.size() > 1 || !remote || !std::holds_alternative<UrlName>(*remote)))
      throw Error(ErrorKind::usage, fmt::format("[options] --sha256: expected one URL, whose file it is of, got \"{}\"", name));
  }
  if (options.quiet) set_quiet();
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on files is an error, as a full disk is
  for (const std::string& name : names) {
    if (const CatalogueEntry* entry = find_in_catalogue(name)) {
      if (const int status = pull_model(*entry, models_folder(), options); status != 0) return status;
      continue;
    }
    const InterruptScope scope;
    try {
      pull_remote(*parse_remote_name(name), models_folder(), options);
    } catch (const Interrupted&) {
      note(fmt::format("{}: interrupted; the next pull goes on from here", visible(name)));
      return kInterruptedStatus;
    }
  }
  return 0;
}

int pull_command(Arguments arguments) {
  constexpr int kMostTimeoutS = 3600, kMostRetries = 1000;
  CommandLine line("pull", "Gets models and checks them: those of the catalogue from their pinned packages, others from the hub or a URL.");
  std::vector<std::string> names;
  PullOptions options;
  line.positionals("NAME", names, "A catalogue name (smollm2, gemma3), hf.co/OWNER/NAME[@REVISION][:FILE or :QUANTIZATION], or the URL of a .gguf file");
  line.option("--sha256", "HEX", "What the file of a URL must hash to", [&](const std::string& text) {
    if (!parse_digest(Digest::Kind::sha256, text))
      throw Error(ErrorKind::usage, fmt::format("[options] --sha256: expected 64 lower-case hexadecimal digits, got \"{}\"", text));
    options.sha256 = text;
  });
  line.integer("--timeout", options.timeout_s, 1, kMostTimeoutS, "Seconds that a connection may bring nothing; default: 30");
  line.integer("--retries", options.retries, 0, kMostRetries, "Of a failed request, in a row; default: 5");
  line.flag("--json", options.json, "A JSON object on stdout for each model; no bar");
  line.flag("--quiet", options.quiet, "Nothing on stderr but errors");
  return line.parse(arguments) ? run_pull(names, options) : 0;
}

}  // namespace couplet::cli
