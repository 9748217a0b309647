#include "couplet/chat_template.h"

#include <mutex>
#include <utility>

#include "couplet/error.h"
#include "text/chat_template_process.h"

namespace couplet {
namespace {

using text::WorkerEnd, text::WorkerProcess;

struct Settings {
  std::mutex mutex;
  std::string program = "/proc/self/exe";
  std::string argument = "template-worker";
  std::optional<std::int64_t> local_seconds;
};

Settings& settings() {
  static Settings settings;
  return settings;
}

// As the worker reads it; empty: the worker's own clock.
std::string clock_field() {
  const std::lock_guard lock(settings().mutex);
  return settings().local_seconds ? std::to_string(*settings().local_seconds) : "";
}

std::unique_ptr<WorkerProcess> start_worker(WorkerProcess::Deadline deadline) {
  std::string program, argument;
  {
    const std::lock_guard lock(settings().mutex);
    program = settings().program;
    argument = settings().argument;
  }
  return std::make_unique<WorkerProcess>(program, argument, deadline);
}

Error failed(const std::string& why) { return Error(ErrorKind::template_failed, "[template] " + why); }

Error limit_error(WorkerEnd end) {
  switch (end) {
    case WorkerEnd::past_processor_limit:
      return failed("ran past its limit of " + std::to_string(text::kRenderProcessorSeconds) + " s of processor time");
    case WorkerEnd::past_deadline:
      return failed("ran past its limit of " + std::to_string(text::kRenderDeadline.count()) + " s");
    case WorkerEnd::killed_by_others:
      return failed("the worker that renders it was killed");
    default:
      return failed("ran past its limit of " + std::to_string(text::kRenderMemoryMib) +
                    " MiB of memory, or of nesting");
  }
}

void check_size(const char* what, std::size_t bytes, std::size_t limit) {
  if (bytes <= limit) return;
  throw failed(std::string(what) + ": expected at most " + std::to_string(limit) + " bytes, got " +
               std::to_string(bytes));
}

}  // namespace

struct ChatTemplate::State {
  std::string source, tool_use_source;
  ChatTemplateTokens tokens;
  std::mutex mutex;  // one render at a time
  std::unique_ptr<WorkerProcess> worker;

  WorkerEnd exchange(std::string_view request, std::string& reply, WorkerProcess::Deadline deadline) {
    if (!worker) worker = start_worker(deadline);
    const WorkerEnd end = worker->exchange(request, reply, deadline);
    if (end != WorkerEnd::answered) worker.reset();
    return end;
  }
};

ChatTemplate::ChatTemplate(std::string source, ChatTemplateTokens tokens, std::string tool_use_source)
    : state_(std::make_unique<State>()) {
  state_->source = std::move(source);
  state_->tool_use_source = std::move(tool_use_source);
  state_->tokens = std::move(tokens);
}

ChatTemplate::~ChatTemplate() = default;

const std::string& ChatTemplate::source() const { return state_->source; }
const std::string& ChatTemplate::tool_use_source() const { return state_->tool_use_source; }

const ChatTemplateTokens& ChatTemplate::tokens() const { return state_->tokens; }

void ChatTemplate::set_worker_command(std::string program, std::string argument) {
  const std::lock_guard lock(settings().mutex);
  settings().program = std::move(program);
  settings().argument = std::move(argument);
}

void ChatTemplate::set_clock(std::optional<std::int64_t> local_seconds) {
  const std::lock_guard lock(settings().mutex);
  settings().local_seconds = local_seconds;
}

std::string ChatTemplate::render(std::string_view conversation) const {
  if (!available()) {
    throw failed("this program was built without its template engine: build it again with cargo >= 1.87 on PATH "
                 "(rustup, or Debian's cargo-web)");
  }
  check_size("the template", state_->source.size(), text::kMaxSourceBytes);
  check_size("the template for tools", state_->tool_use_source.size(), text::kMaxSourceBytes);
  check_size("the conversation", conversation.size(), text::kMaxConversationBytes);
  const ChatTemplateTokens& tokens = state_->tokens;
  const std::string clock = clock_field();
  const std::string request =
      text::pack_fields({state_->source, state_->tool_use_source, tokens.bos, tokens.eos, tokens.unknown,
                         tokens.separator, tokens.padding, tokens.classifier, tokens.mask, conversation, clock});

  const std::lock_guard lock(state_->mutex);
  const auto deadline = std::chrono::steady_clock::now() + text::kRenderDeadline;
  std::string reply;
  WorkerEnd end = state_->exchange(request, reply, deadline);
  // Killed while it was idle, most likely: that is not the template's doing, so a new worker gets the request.
  if (end == WorkerEnd::killed_by_others) end = state_->exchange(request, reply, deadline);
  if (end != WorkerEnd::answered) throw limit_error(end);
  if (!reply.starts_with('1')) throw failed(reply.substr(std::min<std::size_t>(1, reply.size())));
  reply.erase(0, 1);
  return reply;
}

}  // namespace couplet
