#include "formats/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

#include "couplet/error.h"

namespace couplet::formats {
namespace {

namespace fs = std::filesystem;

// A folder of its own for each test, gone afterwards.
class MappedFileTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  const fs::path folder_ =
      fs::path(testing::TempDir()) / (std::string("couplet_mapped_") + std::to_string(::getpid()) + "_" +
                                      testing::UnitTest::GetInstance()->current_test_info()->name());
};

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

void expect_error(const fs::path& path, ErrorKind kind, const std::string& part_of_message) {
  try {
    const MappedFile file(path);
    FAIL() << "opened " << path;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(part_of_message), std::string::npos) << error.what();
  }
}

TEST_F(MappedFileTest, HoldsTheBytes) {
  const MappedFile file(write("some", "text"));
  EXPECT_EQ(text_of(file), "text");
  EXPECT_TRUE(MappedFile(write("none", "")).bytes().empty());
}

TEST_F(MappedFileTest, IsKnownByItsStamp) {
  const fs::path path = write("some", "text");
  const FileStamp stamp = MappedFile(path).stamp();
  EXPECT_EQ(stamp.path, fs::canonical(path).string());
  EXPECT_EQ(stamp.bytes, 4U);
  EXPECT_EQ(stamp_of(path), stamp);
  EXPECT_EQ(stamp_of(folder_ / "nothing"), std::nullopt);
  fs::create_symlink(path, folder_ / "link");
  EXPECT_EQ(stamp_of(folder_ / "link"), stamp);

  const auto modified = fs::last_write_time(path);
  write("some", "test");
  fs::last_write_time(path, modified);  // nobody can set back when it changed
  const auto other = stamp_of(path);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->modified_ns, stamp.modified_ns);
  EXPECT_NE(other->changed_ns, stamp.changed_ns);
}

TEST_F(MappedFileTest, MovesWithoutUnmapping) {
  MappedFile first(write("first", "first"));
  MappedFile second(write("second", "second"));
  MappedFile moved(std::move(first));
  EXPECT_EQ(text_of(moved), "first");
  second = std::move(moved);
  EXPECT_EQ(text_of(second), "first");
}

TEST_F(MappedFileTest, AdviceChangesNoByte) {
  const std::string text(100'000, 'x');
  const MappedFile file(write("some", text));
  read_ahead(file.bytes());
  for (const auto& [offset, size] : {std::pair{0, 1}, {5'000, 70'000}, {99'999, 1}, {0, 100'000}, {3, 0}}) {
    drop_pages(file.bytes().subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size)));
    EXPECT_EQ(text_of(file), text);
  }
}

TEST_F(MappedFileTest, WhatIsNoReadableFileIsAnError) {
  expect_error(folder_ / "missing", ErrorKind::not_found,
               "missing\": expected a readable file, there is none");
  expect_error(write("file", "x") / "below", ErrorKind::not_found, "there is none");
  expect_error("", ErrorKind::not_found, "there is none");
  expect_error(folder_, ErrorKind::io, "got a directory");
  expect_error("/dev/null", ErrorKind::io, "got a pipe or device");
  expect_error(std::string(5'000, 'x'), ErrorKind::io, "got \"File name too long\"");
  expect_error(std::string("a\0b", 3), ErrorKind::not_found, "a\\x00b");
  const auto pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error(pipe, ErrorKind::io, "got a pipe or device");  // and doesn't wait for a writer
}

TEST_F(MappedFileTest, AFileWithoutPermissionIsAnError) {
  const auto path = write("secret", "x");
  fs::permissions(path, fs::perms::none);
  const uid_t user = ::geteuid();
  if (user == 0) {
    ASSERT_EQ(::seteuid(65'534), 0);  // the superuser may read everything
  }
  expect_error(path, ErrorKind::io, "got \"Permission denied\"");
  ASSERT_EQ(::seteuid(user), 0);
}

}  // namespace
}  // namespace couplet::formats
