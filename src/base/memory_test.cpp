#include "base/memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "couplet/error.h"

namespace couplet {
namespace {

TEST(MappedMemory, StartsAsZeros) {
  const MappedMemory memory(100'000, "test");
  EXPECT_EQ(memory.size(), 100'000U);
  EXPECT_TRUE(std::all_of(memory.data(), memory.data() + memory.size(), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(MappedMemory(0, "nothing").data(), nullptr);
}

TEST(MappedMemory, SaysWhatCouldNotBeHad) {
  try {
    const MappedMemory memory(SIZE_MAX / 2, "the universe");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::resource);
    EXPECT_NE(std::string(error.what()).find("the universe"), std::string::npos) << error.what();
  }
}

TEST(MappedMemory, OfAFileIsItsBytesAndOutlivesItsName) {
  std::string name = ::testing::TempDir() + "couplet_memory_XXXXXX";
  const int file = ::mkstemp(name.data());
  ASSERT_GE(file, 0);
  const std::string text = "from here on";
  ASSERT_EQ(::pwrite(file, text.data(), text.size(), kLargePageBytes), static_cast<ssize_t>(text.size()));
  MappedMemory memory(file, kLargePageBytes, text.size(), "file");
  ::close(file);
  ::unlink(name.c_str());
  const MappedMemory moved(std::move(memory));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(moved.data()), moved.size()), text);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(moved.data()) % kLargePageBytes, 0U);
  EXPECT_THROW(MappedMemory(-1, 0, 10, "no file"), Error);
}

}  // namespace
}  // namespace couplet
