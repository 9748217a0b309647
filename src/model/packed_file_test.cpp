#include "model/packed_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <vector>

#include "couplet/error.h"
#include "tests/property/tiny_model.h"

namespace couplet::model {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kBytes = 3 * PackedFile::kPieceBytes + 12'345;  // the last piece is cut
constexpr std::uint64_t kFingerprint = 7;
constexpr std::size_t kHeaderBytes = 8192;

// Stands in for packed weights.
std::byte content_at(std::size_t position, unsigned seed) {
  return static_cast<std::byte>((position * 2654435761U + seed) >> 7);
}
PackedFile::Pack packing(unsigned seed = 1) {
  return [seed](std::size_t begin, std::span<std::byte> out, int) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = content_at(begin + i, seed);
  };
}
bool has_content(const MappedMemory& memory, unsigned seed = 1) {
  if (memory.size() != kBytes) return false;
  for (std::size_t i = 0; i < kBytes; ++i)
    if (memory.data()[i] != content_at(i, seed)) return false;
  return true;
}

class PackedFileTest : public ::testing::Test {
 protected:
  PackedFileTest() : folder_(source_.path().parent_path() / "packed") { reopen(); }

  void reopen() { file_ = formats::CheckpointFile::open(source_.path()); }
  PackedFile copy(std::uint64_t fingerprint = kFingerprint, std::uint64_t bytes = kBytes) const {
    return {folder_, *file_, fingerprint, bytes};
  }
  MappedMemory write(unsigned seed = 1) { return copy().write(threads_, packing(seed), 0); }
  bool usable(const PackedFile& copy) { return copy.map(threads_).has_value(); }
  std::vector<std::string> listing() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
    return names;
  }
  // Expects an error of one line that has `part`, and a folder without a trace.
  void expect_failure(const PackedFile& copy, const PackedFile::Pack& pack, std::uint64_t spare, const std::string& part) {
    try {
      static_cast<void>(copy.write(threads_, pack, spare));
      FAIL() << "it was written";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::io);
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
    EXPECT_EQ(listing(), std::vector<std::string>());
  }
  void flip(std::size_t offset) const {
    std::fstream file(copy().path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(std::streamoff(offset));
    const char byte = static_cast<char>(file.get() ^ 0x10);
    file.seekp(std::streamoff(offset));
    file.put(byte);
  }

  testing::TinyModelFile source_{testing::tiny_llama()};
  fs::path folder_;
  std::unique_ptr<formats::CheckpointFile> file_;
  ThreadPool threads_{2};
};

TEST_F(PackedFileTest, WhatWasWrittenIsMapped) {
  EXPECT_FALSE(copy().present());
  EXPECT_FALSE(usable(copy()));
  EXPECT_TRUE(has_content(write()));
  EXPECT_TRUE(copy().present());
  const auto mapped = copy().map(threads_);
  ASSERT_TRUE(mapped);
  EXPECT_TRUE(has_content(*mapped));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapped->data()) % kLargePageBytes, 0U);
  EXPECT_EQ(listing(), std::vector<std::string>{copy().path().filename().string()});
}

TEST_F(PackedFileTest, ReadersOfTheModelMayReadItsCopy) {
  fs::permissions(source_.path(), fs::perms::owner_read | fs::perms::group_read);
  reopen();
  static_cast<void>(write());
  EXPECT_EQ(fs::status(copy().path()).permissions(), fs::perms::owner_read | fs::perms::group_read);
}

TEST_F(PackedFileTest, ACopyOfSomethingElseIsNone) {
  static_cast<void>(write());
  EXPECT_FALSE(copy(kFingerprint + 1).present());
  EXPECT_FALSE(usable(copy(kFingerprint + 1)));
  EXPECT_FALSE(usable(copy(kFingerprint, kBytes - 1)));
  EXPECT_TRUE(usable(copy()));
}

TEST_F(PackedFileTest, AChangedSourceNeedsANewCopy) {
  static_cast<void>(write());
  const auto modified = fs::last_write_time(source_.path());
  {
    std::fstream file(source_.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('x');
  }
  fs::last_write_time(source_.path(), modified);  // the size and the time of modification tell nothing
  reopen();
  EXPECT_FALSE(copy().present());
  EXPECT_FALSE(usable(copy()));
  EXPECT_TRUE(has_content(write(2), 2));
  EXPECT_EQ(listing().size(), 1U);
  EXPECT_TRUE(usable(copy()));
}

TEST_F(PackedFileTest, CutShortItIsNoneAndIsWrittenAnew) {
  static_cast<void>(write());
  for (const std::uintmax_t size : {std::uintmax_t{0}, std::uintmax_t{100}, std::uintmax_t{kHeaderBytes},
                                    std::uintmax_t{PackedFile::kDataOffset}, PackedFile::kDataOffset + kBytes - 1}) {
    fs::resize_file(copy().path(), size);
    EXPECT_FALSE(copy().present()) << size;
    EXPECT_FALSE(usable(copy())) << size;
    EXPECT_TRUE(has_content(write())) << size;
    EXPECT_TRUE(usable(copy())) << size;
  }
  fs::resize_file(copy().path(), PackedFile::kDataOffset + kBytes + 1);
  EXPECT_FALSE(usable(copy()));
}

TEST_F(PackedFileTest, AFlippedBitIsFound) {
  static_cast<void>(write());
  for (const std::size_t offset : {std::size_t{0}, std::size_t{20}, std::size_t{72}, kHeaderBytes - 1,
                                   PackedFile::kDataOffset, PackedFile::kDataOffset + PackedFile::kPieceBytes - 1,
                                   PackedFile::kDataOffset + kBytes - 1}) {
    flip(offset);
    EXPECT_FALSE(usable(copy())) << offset;
    flip(offset);
    EXPECT_TRUE(usable(copy())) << offset;
  }
  flip(PackedFile::kDataOffset + 4'000'000);
  EXPECT_TRUE(has_content(write()));
  EXPECT_TRUE(usable(copy()));
}

TEST_F(PackedFileTest, AnotherVersionIsNone) {
  static_cast<void>(write());
  std::fstream file(copy().path(), std::ios::in | std::ios::out | std::ios::binary);
  std::vector<char> header(kHeaderBytes);
  file.read(header.data(), std::streamsize(header.size()));
  header[8] = static_cast<char>(header[8] + 1);
  const std::uint64_t hash = XXH3_64bits(header.data(), kHeaderBytes - sizeof hash);
  std::memcpy(header.data() + kHeaderBytes - sizeof hash, &hash, sizeof hash);
  file.seekp(0);
  file.write(header.data(), std::streamsize(header.size()));
  file.close();
  EXPECT_FALSE(usable(copy()));
  EXPECT_TRUE(has_content(write()));
  EXPECT_TRUE(usable(copy()));
}

TEST_F(PackedFileTest, SomethingElseUnderTheNameIsNone) {
  fs::create_directories(folder_);
  ASSERT_EQ(::mkfifo(copy().path().c_str(), 0600), 0);
  EXPECT_FALSE(usable(copy()));  // and nobody waits for a writer
  EXPECT_TRUE(has_content(write()));
  EXPECT_TRUE(usable(copy()));
}

TEST_F(PackedFileTest, AFolderThatCannotBeIsAnError) {
  std::ofstream(folder_.string() + ".txt") << "no folder";
  const PackedFile nowhere(folder_.string() + ".txt", *file_, kFingerprint, kBytes);
  fs::create_directories(folder_);
  EXPECT_FALSE(nowhere.present());
  expect_failure(nowhere, packing(), 0, "Not a directory");
  const PackedFile in_proc("/proc/couplet", *file_, kFingerprint, kBytes);  // nobody may write there
  expect_failure(in_proc, packing(), 0, "/proc/couplet");
}

TEST_F(PackedFileTest, NoRoomIsAnError) {
  fs::create_directories(folder_);
  expect_failure(copy(), packing(), std::uint64_t{1} << 60, "to spare");
  expect_failure(copy(kFingerprint, std::uint64_t{1} << 50), packing(), 0, "free");
}

TEST_F(PackedFileTest, ALimitOnFilesIsAnErrorAndNoSignal) {
  fs::create_directories(folder_);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{std::min<rlim_t>(before.rlim_max, 1 << 20), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_failure(copy(), packing(), 0, "File too large");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
}

// As when the disk fills up on the way: the writes themselves fail, after some have succeeded.
TEST_F(PackedFileTest, AFailedWriteLeavesNothing) {
  fs::create_directories(folder_);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  expect_failure(copy(), [&](std::size_t begin, std::span<std::byte> out, int thread) {
    packing()(begin, out, thread);
    const rlimit small{PackedFile::kDataOffset + PackedFile::kPieceBytes / 2, before.rlim_max};
    if (begin > 0) static_cast<void>(::setrlimit(RLIMIT_FSIZE, &small));
  }, 0, "File too large");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
}

TEST_F(PackedFileTest, ASourceThatChangesMeanwhileIsNotKept) {
  fs::create_directories(folder_);
  expect_failure(copy(), [&](std::size_t begin, std::span<std::byte> out, int thread) {
    packing()(begin, out, thread);
    if (begin == 0) fs::last_write_time(source_.path(), fs::file_time_type::clock::now() + std::chrono::hours(1));
  }, 0, "changed");
}

TEST_F(PackedFileTest, ACopyInUseStaysAsItIs) {
  const MappedMemory first = write(1);
  fs::last_write_time(source_.path(), fs::file_time_type::clock::now() + std::chrono::hours(1));
  reopen();
  EXPECT_TRUE(has_content(write(2), 2));
  EXPECT_TRUE(has_content(first, 1));
  fs::remove_all(folder_);
  EXPECT_TRUE(has_content(first, 1));
}

TEST_F(PackedFileTest, ProcessesMayRace) {
  constexpr int kProcesses = 4, kRounds = 5;
  std::vector<pid_t> children;
  for (int child = 0; child < kProcesses; ++child) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      int status = 0;
      try {
        ThreadPool threads(1);
        for (int round = 0; round < kRounds && status == 0; ++round) {
          if (!has_content(copy().write(threads, packing(), 0))) status = 1;
          const auto mapped = copy().map(threads);
          if (!mapped || !has_content(*mapped)) status = 2;
        }
      } catch (const std::exception&) {
        status = 3;
      }
      ::_exit(status);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(usable(copy()));
  EXPECT_EQ(listing().size(), 1U);
}

TEST_F(PackedFileTest, WhatNobodyUsesIsRemoved) {
  std::string orphan, abandoned = copy().path().string() + ".abcdef", busy = copy().path().string() + ".ghijkl";
  {
    const testing::TinyModelFile other(testing::tiny_llama(), "other");
    const auto file = formats::CheckpointFile::open(other.path());
    const PackedFile copy(folder_, *file, kFingerprint, kBytes);
    static_cast<void>(copy.write(threads_, packing(), 0));
    orphan = copy.path();
  }
  const std::vector<std::string> not_ours = {"notes.packed.abcdef", "notes.packed", "a-0123456789abcdex.packed.abcdef"};
  for (const std::string& name : not_ours) std::ofstream(folder_ / name) << "mine";
  const std::string just_made = copy().path().string() + ".mnopqr";
  for (const std::string& name : {abandoned, busy, just_made}) {
    std::ofstream(name) << "half a copy";
    if (name != just_made) fs::last_write_time(name, fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  const int writer = ::open(busy.c_str(), O_RDONLY);
  ASSERT_EQ(::flock(writer, LOCK_EX), 0);

  static_cast<void>(write());
  EXPECT_FALSE(fs::exists(orphan));
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_TRUE(fs::exists(busy));
  EXPECT_TRUE(fs::exists(just_made));
  for (const std::string& name : not_ours) EXPECT_TRUE(fs::exists(folder_ / name)) << name;
  EXPECT_TRUE(usable(copy()));
  ::close(writer);
}

}  // namespace
}  // namespace couplet::model
