#include "text/chat_template_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "couplet/error.h"

namespace couplet::text {
namespace {

void append_size(std::string& out, std::size_t size) {
  const auto bytes = static_cast<std::uint32_t>(size);
  out.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
}

Error cannot_start(const std::string& program, const std::string& why) {
  return Error(ErrorKind::resource, "[template] cannot start the worker " + program + ": " + why);
}

// Default signals and an empty mask, a process group of its own (Ctrl-C is for the program, not its worker), the
// socket as standard input and output, and no other descriptor.
class SpawnSettings {
 public:
  explicit SpawnSettings(int socket) {
    sigset_t signals;
    posix_spawnattr_init(&attributes);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, socket, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

int spawn(const std::string& program, const std::string& argument, int socket, pid_t& pid) {
  std::string mark = std::string(kWorkerMark) + "=1";
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.push_back(mark.data());
  environment.push_back(nullptr);
  std::string name = program, option = argument;
  std::array<char*, 3> arguments{name.data(), option.data(), nullptr};
  const SpawnSettings settings(socket);
  return posix_spawn(&pid, program.c_str(), &settings.actions, &settings.attributes, arguments.data(),
                     environment.data());
}

// Waits until the socket is ready for `events`; false: the deadline came first.
bool await(int socket, short events, WorkerProcess::Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    pollfd ready{socket, events, 0};
    const int n = poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1 << 30)));
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

std::string pack_fields(const std::vector<std::string_view>& fields) {
  std::string packed;
  for (std::string_view field : fields) {
    append_size(packed, field.size());
    packed += field;
  }
  return packed;
}

std::optional<std::vector<std::string_view>> unpack_fields(std::string_view packed, std::size_t count) {
  std::vector<std::string_view> fields;
  while (fields.size() < count) {
    std::uint32_t size = 0;
    if (packed.size() < sizeof size) return std::nullopt;
    std::memcpy(&size, packed.data(), sizeof size);
    packed.remove_prefix(sizeof size);
    if (packed.size() < size) return std::nullopt;
    fields.push_back(packed.substr(0, size));
    packed.remove_prefix(size);
  }
  if (!packed.empty()) return std::nullopt;
  return fields;
}

WorkerProcess::WorkerProcess(const std::string& program, const std::string& argument, Deadline deadline) {
  // A program that takes the argument for something else and renders too would start itself without end.
  if (getenv(kWorkerMark) != nullptr) throw cannot_start(program, "this process is a worker itself");
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw cannot_start(program, std::strerror(errno));
  }
  socket_ = ends[0];
  const int error = spawn(program, argument, ends[1], pid_);
  close(ends[1]);
  if (error != 0) {
    pid_ = -1;
    stop();
    throw cannot_start(program, std::strerror(error));
  }
  std::string hello;
  if (receive_frame(hello, deadline) != Transfer::done || hello != kWorkerHello) {
    stop();
    throw cannot_start(program, "expected the hello of a template worker (argument " + argument + "), got none");
  }
}

WorkerProcess::~WorkerProcess() { stop(); }

int WorkerProcess::stop() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  if (pid_ < 0) return -1;
  const pid_t pid = pid_;
  pid_ = -1;
  int status = -1;
  pid_t reaped = 0;
  // Only a child that is still ours may get a signal: a reaped one's id may already be another process's.
  if (waitpid(pid, &status, WNOHANG) == 0) {
    kill(pid, SIGKILL);
    while ((reaped = waitpid(pid, &status, 0)) < 0 && errno == EINTR) {
    }
  }
  return reaped < 0 ? -1 : status;
}

WorkerProcess::Transfer WorkerProcess::send_all(const char* data, std::size_t size, Deadline deadline) {
  while (size > 0) {
    const ssize_t n = send(socket_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      data += n;
      size -= static_cast<std::size_t>(n);
    } else if (would_block()) {
      if (!await(socket_, POLLOUT, deadline)) return Transfer::late;
    } else if (errno != EINTR) {
      return Transfer::closed;
    }
  }
  return Transfer::done;
}

WorkerProcess::Transfer WorkerProcess::receive_all(char* data, std::size_t size, Deadline deadline) {
  while (size > 0) {
    const ssize_t n = recv(socket_, data, size, MSG_DONTWAIT);
    if (n > 0) {
      data += n;
      size -= static_cast<std::size_t>(n);
    } else if (n < 0 && would_block()) {
      if (!await(socket_, POLLIN, deadline)) return Transfer::late;
    } else if (n == 0 || errno != EINTR) {
      return Transfer::closed;
    }
  }
  return Transfer::done;
}

WorkerProcess::Transfer WorkerProcess::receive_frame(std::string& frame, Deadline deadline) {
  std::uint32_t size = 0;
  const Transfer head = receive_all(reinterpret_cast<char*>(&size), sizeof size, deadline);
  if (head != Transfer::done) return head;
  if (size > kMaxPromptBytes + 1) return Transfer::closed;  // no worker of ours
  frame.resize(size);
  return receive_all(frame.data(), frame.size(), deadline);
}

WorkerEnd WorkerProcess::exchange(std::string_view request, std::string& reply, Deadline deadline) {
  std::string head;
  append_size(head, request.size());
  Transfer how = send_all(head.data(), head.size(), deadline);
  if (how == Transfer::done) how = send_all(request.data(), request.size(), deadline);
  if (how == Transfer::done) how = receive_frame(reply, deadline);
  return how == Transfer::done ? WorkerEnd::answered : ended(how);
}

WorkerEnd WorkerProcess::ended(Transfer how) {
  const int status = stop();
  if (how == Transfer::late) return WorkerEnd::past_deadline;
  if (status == -1) return WorkerEnd::killed_by_others;
  if (!WIFSIGNALED(status)) return WorkerEnd::crashed;
  switch (WTERMSIG(status)) {
    case SIGPROF:
      return WorkerEnd::past_processor_limit;
    case SIGABRT:  // Rust's answer to memory that isn't there
    case SIGSEGV:  // the stack's end
    case SIGBUS:
    case SIGILL:
    case SIGTRAP:
      return WorkerEnd::crashed;
    default:
      return WorkerEnd::killed_by_others;
  }
}

}  // namespace couplet::text
