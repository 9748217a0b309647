#pragma once
// The process in which a hostile template is rendered, seen from both of its ends. The two speak in frames over one
// socket: 4 bytes of size, then that many bytes. A worker says hello once, then answers each request in turn.

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace couplet::text {

constexpr std::string_view kWorkerHello = "couplet template worker 2";
constexpr const char* kWorkerMark = "COUPLET_TEMPLATE_WORKER";  // set in a worker's environment: it starts no other

// A real template takes well under a millisecond and a MiB.
constexpr int kRenderProcessorSeconds = 2;
constexpr std::size_t kRenderMemoryMib = 512;        // above what the worker has at its start
constexpr std::chrono::seconds kRenderDeadline{30};  // by the wall clock: only a stopped or starved worker meets it
constexpr std::size_t kMaxSourceBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxConversationBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxPromptBytes = std::size_t{16} << 20;

// Texts of a request in one string, each with its size in front.
std::string pack_fields(const std::vector<std::string_view>& fields);
// Nullopt unless `packed` is exactly `count` fields.
std::optional<std::vector<std::string_view>> unpack_fields(std::string_view packed, std::size_t count);

// How a request ended. A worker that is gone was ended by what the template did, or by someone else.
enum class WorkerEnd { answered, past_deadline, past_processor_limit, crashed, killed_by_others };

// The parent's end. Not thread-safe. No descriptor but its socket reaches the worker, nor any signal setting.
class WorkerProcess {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Starts `program argument` and awaits its hello. Throws Error{resource}.
  WorkerProcess(const std::string& program, const std::string& argument, Deadline deadline);
  ~WorkerProcess();  // ends and reaps it
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Sends a request, waits for `reply`. After anything but `answered` the process is gone.
  WorkerEnd exchange(std::string_view request, std::string& reply, Deadline deadline);
  pid_t pid() const { return pid_; }

 private:
  enum class Transfer { done, closed, late };
  Transfer send_all(const char* data, std::size_t size, Deadline deadline);
  Transfer receive_all(char* data, std::size_t size, Deadline deadline);
  Transfer receive_frame(std::string& frame, Deadline deadline);
  WorkerEnd ended(Transfer how);
  int stop();  // ends and reaps it: its wait status, or -1 where another part of the program reaped it

  pid_t pid_ = -1;
  int socket_ = -1;
};

}  // namespace couplet::text
