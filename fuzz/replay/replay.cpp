// Runs every file of a fuzz target's corpus, and every prefix of the small ones, through the target: what
// fuzzing found once stays found, without libFuzzer. Built once a target, with COUPLET_CORPUS its folder.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

// A copy of just the right size, so that a sanitizer sees a read past its end.
void run(const std::vector<char>& bytes, std::size_t size) {
  std::vector<std::uint8_t> input(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  input.shrink_to_fit();
  EXPECT_EQ(LLVMFuzzerTestOneInput(input.data(), input.size()), 0);
}

TEST(FuzzReplay, TheWholeCorpus) {
  constexpr std::size_t kSmall = 4096;
  std::vector<fs::path> files;
  ASSERT_TRUE(fs::is_directory(COUPLET_CORPUS)) << "a fuzz target needs seeds in " COUPLET_CORPUS;
  for (const auto& entry : fs::directory_iterator(COUPLET_CORPUS)) files.push_back(entry.path());
  std::ranges::sort(files);
  EXPECT_FALSE(files.empty()) << "no seeds in " COUPLET_CORPUS;
  for (const fs::path& path : files) {
    SCOPED_TRACE(path);
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(bytes.size(), fs::file_size(path));
    for (std::size_t size = 0; size < std::min(bytes.size(), kSmall); ++size) run(bytes, size);
    run(bytes, bytes.size());
  }
}

}  // namespace
