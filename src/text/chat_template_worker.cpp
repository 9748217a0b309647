// The worker's end: bounds itself first, then renders what comes. Whatever a template makes of it, only this process
// ends. It starts no thread and reads no file but its own size, so a start takes a few milliseconds.

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "couplet/chat_template.h"
#include "text/chat_template_process.h"

#ifdef COUPLET_HAS_RUST
#include "front.h"
#endif

namespace couplet {
#ifdef COUPLET_HAS_RUST
namespace {

using text::kMaxConversationBytes, text::kMaxPromptBytes, text::kMaxSourceBytes;

bool read_all(char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = read(STDIN_FILENO, data, size);
    if (n == 0 || (n < 0 && errno != EINTR)) return false;
    if (n < 0) continue;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool write_all(const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = write(STDOUT_FILENO, data, size);
    if (n < 0 && errno != EINTR) return false;
    if (n < 0) continue;
    data += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

bool write_frame(std::string_view start, std::string_view rest) {
  const auto size = static_cast<std::uint32_t>(start.size() + rest.size());
  return write_all(reinterpret_cast<const char*>(&size), sizeof size) && write_all(start.data(), start.size()) &&
         write_all(rest.data(), rest.size());
}

bool read_frame(std::string& frame) {
  std::uint32_t size = 0;
  if (!read_all(reinterpret_cast<char*>(&size), sizeof size)) return false;
  if (size > 2 * kMaxSourceBytes + kMaxConversationBytes + (std::size_t{1} << 20)) return false;
  frame.resize(size);
  return read_all(frame.data(), frame.size());
}

void lower_limit(__rlimit_resource resource, rlim_t value) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max = std::min(limit.rlim_max, value);
  setrlimit(resource, &limit);
}

// Bytes of address space in use; 0 where it can't be read, and then the limit is the tighter.
rlim_t address_space_bytes() {
  unsigned long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return rlim_t{pages} * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

// The kernel counts this process's time from here; when it is used up, SIGPROF ends it.
void allow_processor_seconds(int seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

// What the request says, else the real clock.
std::int64_t local_seconds(std::string_view field) {
  std::int64_t given = 0;
  if (std::from_chars(field.data(), field.data() + field.size(), given).ec == std::errc()) return given;
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  return localtime_r(&now, &local) == nullptr ? now : now + local.tm_gmtoff;
}

couplet_front_bytes bytes(std::string_view text) { return {text.data(), text.size()}; }

bool answer(std::string_view request) {
  const auto fields = text::unpack_fields(request, 11);
  if (!fields) return false;
  const auto& f = *fields;
  const couplet_front_request front{bytes(f[0]), bytes(f[1]), bytes(f[2]), bytes(f[3]), bytes(f[4]), bytes(f[5]),
                                    bytes(f[6]), bytes(f[7]), bytes(f[8]), bytes(f[9]), local_seconds(f[10])};
  couplet_front_bytes rendered{};
  const bool ok = couplet_front_render(&front, &rendered) == 1;
  const std::string_view prompt(rendered.data, rendered.size);
  const bool written = prompt.size() > kMaxPromptBytes ? write_frame("0", "rendered more than 16 MiB of text")
                                                       : write_frame(ok ? "1" : "0", prompt);
  couplet_front_free(rendered);
  return written;
}

}  // namespace

bool ChatTemplate::available() { return true; }

int ChatTemplate::worker_main() {
  lower_limit(RLIMIT_CORE, 0);
  lower_limit(RLIMIT_AS, address_space_bytes() + (rlim_t{text::kRenderMemoryMib} << 20));
  if (!write_frame(text::kWorkerHello, {})) return 1;
  std::string request;
  while (read_frame(request)) {
    allow_processor_seconds(text::kRenderProcessorSeconds);
    if (!answer(request)) return 1;
    allow_processor_seconds(0);
  }
  return 0;
}

#else

bool ChatTemplate::available() { return false; }
int ChatTemplate::worker_main() { return 1; }

#endif
}  // namespace couplet
