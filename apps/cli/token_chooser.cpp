#include "token_chooser.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>

#include "decode_table.h"
#include "interrupt.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

constexpr std::size_t kMostLineBytes = 4096;
constexpr int kLookAgainMs = 50;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r";
  const std::size_t first = std::min(text.find_first_not_of(kSpaces), text.size());
  return text.substr(first, text.find_last_not_of(kSpaces) + 1 - first);
}

bool read_number(std::string_view text, int least, int greatest, int& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= least && number <= greatest;
}

}  // namespace

TokenChooser::TokenChooser(const Tokenizer& tokenizer, int vocab_size, std::function<void(const TokenChoice&)> ask)
    : tokenizer_(&tokenizer),
      vocab_size_(vocab_size),
      ask_(std::move(ask)),
      from_terminal_(::isatty(STDIN_FILENO) == 1) {}

std::string TokenChooser::read(std::string_view line, const TokenChoice& choice, TokenId& id) const {
  id = -1;
  const std::string_view text = trimmed(line);
  if (text.empty()) return "";
  int number = 0;
  const auto num_candidates = static_cast<int>(choice.alternatives.size());
  if (text[0] == '#' && read_number(text.substr(1), 0, vocab_size_ - 1, number)) {
    id = number;
    return "";
  }
  if (read_number(text, 1, num_candidates, number)) {
    id = choice.alternatives[static_cast<std::size_t>(number - 1)].id;
    return "";
  }
  return fmt::format("expected a number from 1 to {}, #ID with a token id from 0 to {}, or nothing, got \"{}\"",
                     num_candidates, vocab_size_ - 1, visible(text));
}

TokenId TokenChooser::choose(const TokenChoice& choice) {
  if (ended_ || InterruptScope::interrupted()) return -1;
  const auto began = std::chrono::steady_clock::now();
  const TokenId id = ask_until_answered(choice);
  waited_ms_ += std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
  return id;
}

TokenId TokenChooser::ask_until_answered(const TokenChoice& choice) {
  if (ask_) ask_(choice);
  constexpr int kMostColumns = 14;
  const std::string text = out_text(*tokenizer_, choice.id);
  const std::string own = display_width(text) > kMostColumns ? fit(text, kMostColumns) : text;
  const std::string quoted = is_end(*tokenizer_, choice.id) ? own : fmt::format("\"{}\"", own);
  for (;;) {
    say(fmt::format("          which? (Enter: {}) ", quoted));
    std::string line;
    if (!next_line(line)) {
      ended_ = true;
      say("\n");
      return -1;
    }
    if (!from_terminal_) say(visible(trimmed(line)) + "\n");
    TokenId id = -1;
    const std::string why = read(line, choice, id);
    if (why.empty()) return id;
    if (!from_terminal_) {
      problem_ = fmt::format("[explain] --choose: line {}: {}", line_number_, why);
      ended_ = true;
      return -1;
    }
    say("          " + why + "\n");
  }
}

void TokenChooser::say(std::string_view text) const {
  if (!ask_) return;
  print(text);
  flush();
}

bool TokenChooser::next_line(std::string& line) {
  for (;;) {
    const std::size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      ++line_number_;
      return true;
    }
    // A Ctrl-C between a look at the flag and a read would not end the read: so it looks again and again.
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    while (!InterruptScope::interrupted() && ::poll(&input, 1, kLookAgainMs) == 0) continue;
    char bytes[512];
    const bool ends = InterruptScope::interrupted() || buffer_.size() > kMostLineBytes;
    const ssize_t count = ends ? 0 : ::read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      continue;
    } else if (count <= 0) {  // the last line may have no newline
      line = std::move(buffer_);
      buffer_.clear();
      ++line_number_;
      return !line.empty();
    } else {
      buffer_.append(bytes, static_cast<std::size_t>(count));
    }
  }
}

}  // namespace couplet::cli
