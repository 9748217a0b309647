#include "progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "terminal.h"

namespace couplet::cli {
namespace {

bool can_draw() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && (no_color == nullptr || *no_color == '\0') && term != nullptr && std::string_view(term) != "dumb";
}

int columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void write(std::string_view text) {  // a bar that can't be drawn harms nobody
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

Progress::Progress(std::string name, std::uint64_t total_bytes, bool shown)
    : name_(std::move(name)), total_(total_bytes), shown_(shown && can_draw()) {}

void Progress::had(std::uint64_t bytes) {
  done_ += bytes;
  draw();
}

void Progress::add(std::uint64_t bytes) {
  received_ += bytes;
  had(bytes);
}

void Progress::take_back(std::uint64_t bytes) { done_ -= std::min(bytes, done_); }

void Progress::say(const std::string& text) {
  clear();
  note(text);
}

void Progress::draw() {
  constexpr auto kPause = std::chrono::milliseconds(100);
  const Clock::time_point now = Clock::now();
  if (!shown_ || now - last_draw_ < kPause) return;
  last_draw_ = now;
  const double seconds = std::max(std::chrono::duration<double>(now - start_).count(), 0.001);
  const std::string figures = fmt::format(" {} of {}  {:.1f} MB/s", amount(done_), amount(total_), static_cast<double>(received_) / 1e6 / seconds);
  const int room = std::max(0, columns() - 1 - display_width(figures));
  const int width = std::clamp(room / 3, 0, 40), name_width = std::min(display_width(name_), std::max(0, room - width - 4));
  const double share = total_ == 0 ? 1 : static_cast<double>(done_) / static_cast<double>(total_);
  write(fmt::format("\r\x1b[K{}  [{}]{}", fit_end(name_, name_width), fit(bar(share, width), width), figures));
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) write("\r\x1b[K");
  drawn_ = false;
  last_draw_ = {};
}

}  // namespace couplet::cli
