#include "line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cwchar>

#include "interrupt.h"
#include "terminal.h"

namespace couplet::cli {
namespace {

constexpr int kHistoryLines = 1000;

char* prompt_of(EditLine* editor) {
  void* self = nullptr;
  el_get(editor, EL_CLIENTDATA, &self);
  return static_cast<std::string*>(self)->data();
}

// Waits for input; false: Ctrl-C came. It is let in only while waiting, so none is missed just before.
bool wait_for_input() {
  sigset_t interrupt, before;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &interrupt, &before);
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  int ready = 0;
  while (!InterruptScope::interrupted() && ready <= 0) {
    ready = ::ppoll(&input, 1, nullptr, &before);
    if (ready < 0 && errno != EINTR) break;  // reading will say why
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return !InterruptScope::interrupted();
}

// As libedit's own, but Ctrl-C ends the line: libedit would go on reading once.
int read_character(EditLine*, wchar_t* character) {
  std::mbstate_t state{};
  for (;;) {
    if (!wait_for_input()) return -1;
    char byte = 0;
    const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
    if (count == 0) return 0;
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return -1;
    const std::size_t used = std::mbrtowc(character, &byte, 1, &state);
    if (used <= 1) return 1;
    if (used == static_cast<std::size_t>(-1)) state = {};  // no UTF-8: dropped
  }
}

}  // namespace

LineEditor::LineEditor(std::string prompt) : prompt_(std::move(prompt)), plain_("-") {
  if (::isatty(STDIN_FILENO) != 1) return;
  std::setlocale(LC_CTYPE, "C.UTF-8");
  editor_ = el_init("couplet", stdin, stderr, stderr);
  if (editor_ == nullptr) return;
  history_ = history_init();
  HistEvent event;
  ::history(history_, &event, H_SETSIZE, kHistoryLines);
  ::history(history_, &event, H_SETUNIQUE, 1);
  el_set(editor_, EL_CLIENTDATA, &prompt_);
  el_set(editor_, EL_PROMPT, prompt_of);
  el_set(editor_, EL_GETCFN, read_character);
  el_set(editor_, EL_EDITOR, "emacs");
  el_set(editor_, EL_HIST, ::history, history_);
  el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
}

LineEditor::~LineEditor() {
  if (history_ != nullptr) history_end(history_);
  if (editor_ != nullptr) el_end(editor_);
}

std::optional<std::string> LineEditor::next() {
  if (editor_ == nullptr) {
    std::string text;
    return plain_.next(text) ? std::optional(text) : std::nullopt;
  }
  for (;;) {
    const InterruptScope interrupt;
    int length = 0;
    el_set(editor_, EL_PREP_TERM, 1);  // before the prompt is seen: a Ctrl-D typed at once would be lost else
    const char* line = el_gets(editor_, &length);
    if (interrupt.interrupted()) {
      show_error("");
      el_reset(editor_);
      continue;
    }
    if (line == nullptr || length <= 0) return std::nullopt;
    std::string text(line, static_cast<std::size_t>(length));
    if (text.ends_with('\n')) text.pop_back();
    HistEvent event;
    if (!text.empty()) ::history(history_, &event, H_ENTER, text.c_str());
    return text;
  }
}

}  // namespace couplet::cli
