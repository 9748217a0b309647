// What a template may do: anything. What it can't: end, stall or fill this process, or spoil the next render.

#include "couplet/chat_template.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "couplet/error.h"
#include "text/chat_template_process.h"

namespace couplet {
namespace {

constexpr const char* kHello = R"({"messages": [{"role": "user", "content": "hello"}]})";
constexpr const char* kGoodTemplate = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";

// The ids of this process's children, zombies too.
std::vector<pid_t> children() {
  std::vector<pid_t> found;
  DIR* proc = opendir("/proc");
  while (const dirent* entry = readdir(proc)) {
    std::ifstream stat(std::string("/proc/") + entry->d_name + "/stat");
    std::string id, name, state;
    pid_t parent = 0;
    if (stat >> id >> name >> state >> parent && parent == getpid()) found.push_back(std::stoi(id));
  }
  closedir(proc);
  return found;
}

std::vector<std::string> open_files(pid_t pid) {
  std::vector<std::string> found;
  DIR* folder = opendir(("/proc/" + std::to_string(pid) + "/fd").c_str());
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') found.emplace_back(entry->d_name);
  }
  closedir(folder);
  return found;
}

std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

class ChatTemplateTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ChatTemplate::set_worker_command(COUPLET_BINARY_DIR "/tests/couplet_template_worker", "template-worker");
    if (!ChatTemplate::available()) GTEST_SKIP() << "built without Rust";
  }
  void TearDown() override { EXPECT_EQ(children(), std::vector<pid_t>()) << "a worker outlives its template"; }
};

// The message of the error that rendering ends in; "" and a failed test where it doesn't.
std::string refusal(const ChatTemplate& chat, std::string_view conversation = kHello) {
  try {
    const std::string text = chat.render(conversation);
    ADD_FAILURE() << "rendered " << text.size() << " bytes: " << text.substr(0, 200);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::template_failed);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "";
}

std::string refusal_of(const std::string& source, std::string_view conversation = kHello) {
  const ChatTemplate chat(source, {});
  return refusal(chat, conversation);
}

TEST_F(ChatTemplateTest, RendersInOneWorkerThatIsReused) {
  const ChatTemplate chat("{{ bos_token }}" + std::string(kGoodTemplate), {.bos = "<s>"});
  EXPECT_EQ(children().size(), 0U) << "a worker before the first render";
  EXPECT_EQ(chat.render(kHello), "<s><user>hello");
  const auto workers = children();
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(chat.render(R"({"messages": [{"role": "a", "content": "b"}]})"), "<s><a>b");
  EXPECT_EQ(children(), workers);
}

TEST_F(ChatTemplateTest, AnEmptyTokenIsNotDefined) {
  const ChatTemplate chat("{{ bos_token is defined }} {{ pad_token }} {{ unk_token }}", {.eos = "e", .unknown = "u", .padding = "p"});
  EXPECT_EQ(chat.render(kHello), "False p u");
}

TEST_F(ChatTemplateTest, ShowsTheLocalTime) {
  setenv("TZ", "XYZ-14", 1);  // fourteen hours ahead of UTC
  const ChatTemplate chat("{{ strftime_now('%Y-%m-%d %H') }}", {});
  const auto now = [] {
    const std::time_t ahead = std::time(nullptr) + 14 * 3600;
    std::tm parts{};
    gmtime_r(&ahead, &parts);
    std::string text(32, '\0');
    text.resize(std::strftime(text.data(), text.size(), "%Y-%m-%d %H", &parts));
    return text;
  };
  const std::string before = now(), shown = chat.render(kHello), after = now();
  EXPECT_TRUE(shown == before || shown == after) << shown;
  unsetenv("TZ");
}

TEST_F(ChatTemplateTest, ShowsTheTimeThatWasSet) {
  const ChatTemplate chat("{{ strftime_now('%d %b %Y %H:%M:%S') }}", {});
  ChatTemplate::set_clock(1709164799);
  EXPECT_EQ(chat.render(kHello), "28 Feb 2024 23:59:59");
  ChatTemplate::set_clock(1709164800);
  EXPECT_EQ(chat.render(kHello), "29 Feb 2024 00:00:00");
  ChatTemplate::set_clock(std::nullopt);
  EXPECT_NE(chat.render(kHello), "29 Feb 2024 00:00:00");
}

TEST_F(ChatTemplateTest, TheFinalMessageGoesOnWhereItsTextEnds) {
  const auto continued = [](const std::string& source, const std::string& message, const std::string& field) {
    const ChatTemplate chat(source, {});
    return chat.render(R"({"messages": [{"role": "user", "content": "q"}, )" + message +
                       R"(], "continue_final_message": )" + field + "}");
  };
  const std::string think = "{% for m in messages %}<{{ m.reasoning_content }}|{{ m.content }}>{% endfor %}";
  const std::string answer = R"({"role": "a", "reasoning": "why ", "content": "so "})";
  EXPECT_EQ(continued(kGoodTemplate, answer, "true"), "<user>q<a>so ");
  EXPECT_EQ(continued(think, answer, "true"), "<|q><why |so ");
  EXPECT_EQ(continued(think, answer, R"("reasoning")"), "<|q><why ");
  EXPECT_EQ(continued("{{ messages[-1].content | trim }}.", answer, "true"), "so");
  const std::string both = R"({"messages": [{"role": "u", "content": "x"}], "continue_final_message": true,)"
                           R"( "add_generation_prompt": true})";
  EXPECT_NE(refusal_of(kGoodTemplate, both).find("exclude each other"), std::string::npos);
  EXPECT_THROW(continued(kGoodTemplate, answer, R"("refusal")"), Error) << "no such field";
  EXPECT_THROW(continued("{{ messages | length }}", answer, "true"), Error) << "the template reads no content";
  EXPECT_THROW(continued("{{ messages[0].content }}", answer, "true"), Error) << "it leaves out the last message";
}

TEST_F(ChatTemplateTest, ATemplateRefusesInItsOwnWords) {
  EXPECT_EQ(refusal_of("{{ raise_exception('Roles must alternate!') }}"), "[template] Roles must alternate!");
  EXPECT_EQ(refusal_of("{{ raise_exception('two\nlines') }}"), "[template] two lines");
  EXPECT_LT(refusal_of("{{ raise_exception('x' * 1000000) }}").size(), 600U);
}

TEST_F(ChatTemplateTest, AnEndlessLoopEndsAndTheNextRenderWorks) {
  sigset_t all, before;  // the worker must not inherit that the signal of its limit is blocked
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  const ChatTemplate chat(
      "{% if messages[0].role == 'bomb' %}{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}"
      "{% endfor %}{% endfor %}{% endfor %}{% endif %}fine",
      {});
  EXPECT_EQ(chat.render(kHello), "fine");
  EXPECT_EQ(refusal(chat, R"({"messages": [{"role": "bomb"}]})"),
            "[template] ran past its limit of 2 s of processor time");
  EXPECT_EQ(chat.render(kHello), "fine");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(ChatTemplateTest, MemoryIsBoundedAndTheNextRenderWorks) {
#ifdef __SANITIZE_THREAD__  // each byte costs so much more time here that the time runs out first
  const std::string limit = "[template] ran past its limit of ";
#else
  const std::string limit = "[template] ran past its limit of 512 MiB of memory";
#endif
  const ChatTemplate text(
      "{% if messages[0].role == 'bomb' %}{% set ns = namespace(s='12345678') %}{% for i in range(60) %}"
      "{% set ns.s = ns.s + ns.s %}{% endfor %}{{ ns.s | length }}{% endif %}fine",
      {});
  const std::string message = refusal(text, R"({"messages": [{"role": "bomb"}]})");
  EXPECT_TRUE(message.starts_with(limit)) << message;
  EXPECT_EQ(text.render(kHello), "fine");
  // Text that grows without end: which of the limits it meets first is the machine's affair.
  EXPECT_TRUE(refusal_of("{% for i in range(99999) %}{{ 'x' * 9999999 }}{% endfor %}")
                  .starts_with("[template] ran past its limit of "));
}

TEST_F(ChatTemplateTest, DeepNestingEndsInAnError) {
  const int deep = 100000;
  for (const std::string& source : std::vector<std::string>{
           "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
           "{{ " + std::string(deep, '(') + "1" + std::string(deep, ')') + " }}",
           "{{ " + std::string(deep, '[') + std::string(deep, ']') + " }}",
           "{{ " + repeat("not ", deep) + "1 }}",
           "{{ messages" + repeat(".a", deep) + " }}",
           repeat("{% if 1 %}", deep) + repeat("{% endif %}", deep),
           "{% for m in messages recursive %}{{ loop(messages) }}{% endfor %}",
       }) {
    EXPECT_NE(refusal_of(source), "") << source.substr(0, 40);
  }
  // A long sum is a deep tree: an answer or an error, as the engine likes.
  const ChatTemplate sum("{{ 1" + repeat("+1", deep) + " }}", {});
  try {
    EXPECT_EQ(sum.render(kHello), std::to_string(deep + 1));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::template_failed);
  }
}

TEST_F(ChatTemplateTest, TheTextIsBounded) {
  const std::string million = "{{ 'x' * 1000000 }}";
  const ChatTemplate chat("{% for i in range(16) %}" + million + "{% endfor %}", {});
  EXPECT_EQ(chat.render(kHello).size(), 16000000U);
  EXPECT_EQ(refusal_of("{% for i in range(17) %}" + million + "{% endfor %}"),
            "[template] rendered more than 16 MiB of text");
}

TEST_F(ChatTemplateTest, ABrokenTemplateIsAnErrorEachTime) {
  const ChatTemplate chat("{% for m in messages %}", {});
  EXPECT_NE(refusal(chat).find("[template] failed to compile: "), std::string::npos);
  EXPECT_NE(refusal(chat).find("[template] failed to compile: "), std::string::npos);
  EXPECT_EQ(children().size(), 1U) << "an error of the template ends no worker";
  EXPECT_NE(refusal_of("ab\xff{{ 1 }}").find("expected UTF-8, got another byte at offset 2"), std::string::npos);
  EXPECT_NE(refusal_of(std::string((1 << 20) + 1, ' ')).find("at most 1048576 bytes"), std::string::npos);
  EXPECT_EQ(ChatTemplate(std::string("a\0b", 3), {}).render(kHello), std::string("a\0b", 3));
  EXPECT_EQ(ChatTemplate("", {}).render(kHello), "");
}

TEST_F(ChatTemplateTest, ABrokenConversationIsAnError) {
  const ChatTemplate chat(kGoodTemplate, {});
  for (const std::string& conversation : std::vector<std::string>{
           "", "null", "[]", "{}", R"({"messages": 1})", R"({"messages": []})", R"({"messages": ["hello"]})",
           R"({"messages": [{"role": "user"}])", "{\"messages\": [{\"role\": \"\xff\"}]}",
           "{\"messages\": [{\"role\": \"\xc0\x80\"}]}", R"({"messages": [{"role": "\ud800"}]})",
           R"({"messages": [{"role": 1e999}]})", R"({"messages": [{"role": "u"}], "continue_final_message": 1})",
           std::string(1000000, '['), R"({"messages": )" + std::string(200, '[') + std::string(200, ']') + "}",
           std::string((16 << 20) + 1, ' '),
       }) {
    const std::string message = refusal(chat, conversation);
    EXPECT_LT(message.size(), 200U) << message;
  }
  EXPECT_EQ(chat.render(R"({"messages": [{"role": "\u0000", "content": "\ud83d\ude0a"}]})"),
            std::string("<\0>\xf0\x9f\x98\x8a", 7));
}

TEST_F(ChatTemplateTest, ALongConversationPassesBothWays) {
  const std::string long_text(8 << 20, 'a');
  const ChatTemplate chat(kGoodTemplate, {});
  EXPECT_EQ(chat.render(R"({"messages": [{"role": "", "content": ")" + long_text + "\"}]}"), "<>" + long_text);
}

TEST_F(ChatTemplateTest, AWorkerKilledWhileIdleIsReplaced) {
  const ChatTemplate chat(kGoodTemplate, {});
  for (const int signal : {SIGKILL, SIGTERM}) {
    EXPECT_EQ(chat.render(kHello), "<user>hello");
    const auto before = children();
    ASSERT_EQ(before.size(), 1U);
    kill(before[0], signal);
    EXPECT_EQ(chat.render(kHello), "<user>hello");
    EXPECT_EQ(children().size(), 1U);
    EXPECT_NE(children(), before);
  }
}

TEST_F(ChatTemplateTest, AWorkerThatDoesNotAnswerIsEndedAtTheDeadline) {
  const auto soon = [](int ms) { return std::chrono::steady_clock::now() + std::chrono::milliseconds(ms); };
  text::WorkerProcess worker(COUPLET_BINARY_DIR "/tests/couplet_template_worker", "template-worker", soon(30000));
  kill(worker.pid(), SIGSTOP);
  std::string reply;
  const std::string request(8 << 20, 'x');  // more than the socket holds: sending has to end too
  EXPECT_EQ(worker.exchange(request, reply, soon(50)), text::WorkerEnd::past_deadline);
  EXPECT_EQ(children().size(), 0U);
  EXPECT_THROW(text::WorkerProcess("/bin/cat", "/dev/zero", soon(30000)), Error) << "not a hello";
}

TEST_F(ChatTemplateTest, AHostThatReapsChildrenItselfIsServed) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  {
    const ChatTemplate chat(kGoodTemplate, {});
    EXPECT_EQ(chat.render(kHello), "<user>hello");
    kill(children().at(0), SIGKILL);
    EXPECT_EQ(chat.render(kHello), "<user>hello");
  }
  signal(SIGCHLD, before);
}

TEST_F(ChatTemplateTest, TheWorkerInheritsNoFileAndNoTerminalGroup) {
  const int inherited = open("/dev/null", O_RDONLY);  // without O_CLOEXEC, as a careless library would
  ASSERT_GE(inherited, 3);
  const ChatTemplate chat(kGoodTemplate, {});
  chat.render(kHello);
  const pid_t worker = children().at(0);
  EXPECT_EQ(open_files(worker).size(), 3U);
  EXPECT_EQ(getpgid(worker), worker);
  close(inherited);
}

TEST_F(ChatTemplateTest, TheWorkerEndsWithItsInput) {
  const std::string command = COUPLET_BINARY_DIR "/tests/couplet_template_worker template-worker";
  EXPECT_EQ(std::system((command + " </dev/null >/dev/null").c_str()), 0);
  EXPECT_EQ(std::system(("printf abc | " + command + " >/dev/null").c_str()), 0);  // half a frame
}

TEST_F(ChatTemplateTest, ManyThreadsRenderAtOnce) {
  const ChatTemplate one(kGoodTemplate, {}), other("{{ messages | length }}", {});
  std::vector<std::thread> threads;
  std::vector<int> right(4);
  for (std::size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string text = std::to_string(t) + "," + std::to_string(i);
        const std::string json = R"({"messages": [{"role": "u", "content": ")" + text + "\"}]}";
        right[t] += one.render(json) == "<u>" + text && other.render(json) == "1";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, std::vector<int>(4, 50));
}

TEST_F(ChatTemplateTest, AProgramThatIsNoWorkerIsRefused) {
  const ChatTemplate chat(kGoodTemplate, {});
  for (const char* program : {"/nowhere/worker", "/bin/true", "/bin/echo"}) {
    ChatTemplate::set_worker_command(program, "template-worker");
    try {
      chat.render(kHello);
      ADD_FAILURE() << program;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::resource);
      EXPECT_NE(std::string(error.what()).find(program), std::string::npos) << error.what();
    }
  }
  SetUp();
  EXPECT_EQ(chat.render(kHello), "<user>hello");
}

TEST_F(ChatTemplateTest, AWorkerStartsNoWorker) {
  setenv(text::kWorkerMark, "1", 1);
  const ChatTemplate chat(kGoodTemplate, {});
  EXPECT_THROW(chat.render(kHello), Error);
  unsetenv(text::kWorkerMark);
}

TEST(ChatTemplateEngine, IsThereOrSaysHowToGetIt) {
  ChatTemplate::set_worker_command(COUPLET_BINARY_DIR "/tests/couplet_template_worker", "template-worker");
  const ChatTemplate chat(kGoodTemplate, {});
  if (ChatTemplate::available()) {
    EXPECT_EQ(chat.render(kHello), "<user>hello");
  } else {
    EXPECT_NE(refusal(chat).find("cargo >= 1.87"), std::string::npos);
  }
}

TEST(ChatTemplateFrame, FieldsComeBackAndAnythingElseIsRefused) {
  const std::string packed = text::pack_fields({"a", "", std::string_view("\0b", 2)});
  const auto fields = text::unpack_fields(packed, 3);
  ASSERT_TRUE(fields);
  EXPECT_EQ(*fields, (std::vector<std::string_view>{"a", "", std::string_view("\0b", 2)}));
  EXPECT_FALSE(text::unpack_fields(packed, 2));
  EXPECT_FALSE(text::unpack_fields(packed, 4));
  for (std::size_t size = 0; size < packed.size(); ++size) {
    EXPECT_FALSE(text::unpack_fields(std::string_view(packed).substr(0, size), 3)) << size;
  }
}

}  // namespace
}  // namespace couplet
