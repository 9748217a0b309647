#include "terminal.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <cwchar>

#include "couplet/error.h"

namespace couplet::cli {
namespace {

std::string& pending() {
  static std::string text;
  return text;
}

bool quiet = false;

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      wait_until_ready(fd, POLLOUT);
    } else if (errno != EINTR) {
      if (errno == EPIPE) throw ReaderLeft{};
      throw Error(ErrorKind::io, std::string("[output] standard output: ") + std::strerror(errno));
    }
  }
}

// The length of the well-formed UTF-8 character at the beginning of `text`, and the character; 0: there is
// none.
std::size_t next_character(std::string_view text, char32_t& character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80   ? 1
                             : lead < 0xC2 ? 0
                             : lead < 0xE0 ? 2
                             : lead < 0xF0 ? 3
                             : lead < 0xF5 ? 4
                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  character = length == 1 ? lead : lead & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    character = (character << 6) | (byte(i) & 0x3FU);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xD800 && character < 0xE000;
  return character < kLeast[length] || character > 0x10FFFF || surrogate ? 0 : length;
}

// Controls, and the marks that turn the direction of a line around.
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0x2028 || c == 0x2029;
}

int columns_of(char32_t character) {
  static const bool ready = std::setlocale(LC_CTYPE, "C.UTF-8") != nullptr;
  if (!ready) return 1;
  return std::max(0, ::wcwidth(static_cast<wchar_t>(character)));
}

std::string styled(std::string_view text, const char* code) {
  return use_color() ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace

void wait_until_ready(int fd, short events) {
  pollfd one = {fd, events, 0};
  ::poll(&one, 1, -1);  // what fails here, or is cut short by a signal, the next try will meet
}

void print(std::string_view text) {
  constexpr std::size_t kBufferBytes = 1U << 16;
  pending().append(text);
  if (pending().size() >= kBufferBytes) flush();
}

void flush() {
  const std::string text = std::move(pending());
  pending().clear();
  write_all(STDOUT_FILENO, text);
}

bool output_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

void set_quiet() { quiet = true; }

void note(std::string_view text) {
  if (!quiet) show_error(text);
}

namespace {

void write_to_error(std::string_view rest) {
  while (!rest.empty()) {  // nowhere is left to say that this failed
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      wait_until_ready(STDERR_FILENO, POLLOUT);
      continue;
    }
    if (written <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

void show_error(std::string_view text) { write_to_error(std::string(text) + "\n"); }

void show_progress(std::string_view text) {
  constexpr std::string_view kClearLine = "\r\x1b[K";
  if (!quiet && ::isatty(STDERR_FILENO) == 1) write_to_error(std::string(kClearLine) + std::string(text));
}

bool use_color() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  return output_is_terminal() && !dumb && (no_color == nullptr || *no_color == '\0');
}

int line_width() {
  constexpr int kDefault = 80, kLeast = 40;
  winsize size{};
  if (output_is_terminal() && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return std::max(kLeast, static_cast<int>(size.ws_col));
  return kDefault;
}

std::string dim(std::string_view text) { return styled(text, "2"); }
std::string bold(std::string_view text) { return styled(text, "1"); }

std::string visible(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    char32_t character = 0;
    const std::size_t length = next_character(text, character);
    if (length == 0) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (character == '\n') {
      shown += "\\n";
    } else if (character == '\t') {
      shown += "\\t";
    } else if (is_control(character)) {
      shown += character < 0x80 ? fmt::format("\\x{:02x}", static_cast<unsigned>(character))
                                : fmt::format("\\u{:04x}", static_cast<unsigned>(character));
    } else {
      shown += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return shown;
}

std::string harmless(std::string_view text) {
  constexpr std::string_view kDeletePicture = "\u2421";
  std::string shown;
  while (!text.empty()) {
    char32_t character = 0;
    const std::size_t length = std::max<std::size_t>(next_character(text, character), 1);
    const std::string_view bytes = text.substr(0, length);
    text.remove_prefix(length);
    if (utf8_length(bytes) == 0 || (character >= 0x80 && is_control(character))) {
      shown += visible(bytes);
    } else if (character == 0x7F) {
      shown += kDeletePicture;
    } else if (is_control(character) && character != '\n' && character != '\t') {
      shown += "\xE2\x90";  // U+2400 + the control
      shown += static_cast<char>(0x80 + character);
    } else {
      shown += bytes;
    }
  }
  return shown;
}

std::size_t utf8_length(std::string_view text) {
  char32_t character = 0;
  return text.empty() ? 0 : next_character(text, character);
}

int display_width(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    char32_t character = 0;
    const std::size_t length = next_character(text, character);
    columns += length == 0 ? 1 : columns_of(character);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return columns;
}

std::string fit(std::string_view text, int width) {
  if (width <= 0) return "";
  const int needed = display_width(text);
  if (needed <= width) return std::string(text) + std::string(static_cast<std::size_t>(width - needed), ' ');
  std::string shown;
  int columns = 0;
  while (!text.empty()) {
    char32_t character = 0;
    const std::size_t length = std::max<std::size_t>(next_character(text, character), 1);
    const int next = display_width(text.substr(0, length));
    if (columns + next > width - 1) break;
    shown += text.substr(0, length);
    columns += next;
    text.remove_prefix(length);
  }
  shown += "…";
  return shown + std::string(static_cast<std::size_t>(std::max(0, width - columns - 1)), ' ');
}

std::string fit_end(std::string_view text, int width) {
  if (width <= 0) return "";
  int needed = display_width(text);
  if (needed <= width) return fit(text, width);
  while (needed > width - 1) {
    char32_t character = 0;
    const std::size_t length = std::max<std::size_t>(next_character(text, character), 1);
    needed -= display_width(text.substr(0, length));
    text.remove_prefix(length);
  }
  return fit("…" + std::string(text), width);
}

std::string pad_left(std::string_view text, int width) {
  const int missing = std::max(0, width - display_width(text));
  return std::string(static_cast<std::size_t>(missing), ' ') + std::string(text);
}

std::string bar(double share, int width) {
  const double length = std::clamp(share, 0.0, 1.0) * width;
  return std::string(static_cast<std::size_t>(length + 0.5), '#');
}

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, ",");
  return digits;
}

std::string amount(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value < 1e3) return fmt::format("{} B", bytes);
  if (value < 1e6) return fmt::format("{:.{}f} kB", value / 1e3, value < 1e4 ? 1 : 0);
  if (value < 1e9) return fmt::format("{:.{}f} MB", value / 1e6, value < 1e7 ? 1 : 0);
  return fmt::format("{:.{}f} GB", value / 1e9, value < 1e11 ? 1 : 0);
}

std::string percent(double share) {
  if (share > 0 && share < 0.0005) return "<0.1 %";
  return fmt::format("{:.1f} %", share * 100);
}

std::string milliseconds(double ms) {
  if (ms < 100) return fmt::format("{:.1f} ms", ms);
  if (ms < 10'000) return fmt::format("{:.0f} ms", ms);
  return fmt::format("{:.1f} s", ms / 1e3);
}

}  // namespace couplet::cli
