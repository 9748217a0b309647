// Random changes to the headers of real and synthetic GGUF files: whatever comes out, it is a checkpoint that
// can be read to its last byte, or a couplet::Error.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "couplet/error.h"
#include "formats/checkpoint_file.h"
#include "formats/checkpoint_testing.h"
#include "formats/gguf_builder.h"
#include "formats/printable.h"

namespace couplet::formats {
namespace {

constexpr int kMutations = 3'000;

// A private, writable copy of a model's pages, of which only the changed ones take memory.
class WritableModel {
 public:
  explicit WritableModel(const std::string& name) {
    const char* folder = std::getenv("COUPLET_MODELS");
    const char* home = std::getenv("HOME");
    path_ = (folder ? std::string(folder) : std::string(home ? home : "") + "/.cache/couplet") + "/" + name;
    const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status{};
    if (file < 0 || ::fstat(file, &status) != 0) return;
    const auto size = static_cast<std::size_t>(status.st_size);
    void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    ::close(file);
    if (address != MAP_FAILED) bytes_ = {static_cast<std::byte*>(address), size};
  }
  WritableModel(const WritableModel&) = delete;
  WritableModel& operator=(const WritableModel&) = delete;
  ~WritableModel() {
    if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
  }

  const std::string& path() const { return path_; }
  std::span<std::byte> bytes() { return bytes_; }

 private:
  std::string path_;
  std::span<std::byte> bytes_;
};

// Bytes before the tensor data.
std::size_t header_size(std::span<const std::byte> bytes) {
  const auto file = CheckpointFile::parse(bytes);
  const std::byte* first = bytes.data() + bytes.size();
  for (const Tensor& tensor : file->tensors()) first = std::min(first, tensor.bytes.data());
  return static_cast<std::size_t>(first - bytes.data());
}

// Changes one to four places of the header for as long as it lives: a bit, a byte, or a number of eight bytes
// that likes to overflow. Most places are near the ends, where counts, sizes and offsets lie; the middle is
// vocabulary.
class Mutation {
 public:
  Mutation(std::span<std::byte> header, std::mt19937_64& random) : header_(header) {
    for (auto places = random() % 4 + 1; places > 0; --places) change(random);
  }
  Mutation(const Mutation&) = delete;
  Mutation& operator=(const Mutation&) = delete;
  ~Mutation() {
    for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) header_[undo->first] = undo->second;
  }

 private:
  void change(std::mt19937_64& random) {
    constexpr std::array<std::uint64_t, 10> kNumbers{
        0, 1, 0xffff, 0x7fffffff, 0xffffffff, 1ull << 32, 1ull << 40, (1ull << 63) - 1, 1ull << 63, ~0ull};
    constexpr std::size_t kEnd = 16 * 1024;
    const std::size_t size = header_.size();
    std::size_t at = random() % size;
    if (random() % 8 < 3) at = random() % std::min(size, kEnd / 8);
    if (random() % 8 < 3) at = size - 1 - random() % std::min(size, kEnd);
    switch (random() % 3) {
      case 0:
        return set(at, header_[at] ^ static_cast<std::byte>(1u << random() % 8));
      case 1:
        return set(at, static_cast<std::byte>(random()));
      default:
        std::array<std::byte, 8> number;
        std::memcpy(number.data(), &kNumbers[random() % kNumbers.size()], number.size());
        for (std::size_t i = 0; i < number.size() && at + i < size; ++i) set(at + i, number[i]);
    }
  }
  void set(std::size_t at, std::byte value) {
    undo_.emplace_back(at, header_[at]);
    header_[at] = value;
  }

  std::span<std::byte> header_;
  std::vector<std::pair<std::size_t, std::byte>> undo_;
};

struct Outcomes {
  int opened = 0;
  int refused = 0;
};

Outcomes mutate(std::span<std::byte> bytes, std::uint64_t seed) {
  Outcomes outcomes;
  std::mt19937_64 random(seed);
  const auto header = bytes.first(header_size(bytes));
  const std::vector<std::byte> original(header.begin(), header.end());
  for (int i = 0; i < kMutations; ++i) {
    const Mutation mutation(header, random);
    try {
      const auto file = CheckpointFile::parse(bytes);
      touch_everything(*file);
      ++outcomes.opened;
    } catch (const Error& error) {
      EXPECT_TRUE(is_printable(error.what())) << in_quotes(error.what(), 4096);
      ++outcomes.refused;
    }
  }
  EXPECT_TRUE(std::ranges::equal(header, original)) << "a mutation outlived its turn";
  return outcomes;
}

class RealModels : public testing::TestWithParam<const char*> {};

TEST_P(RealModels, MutatedOpenOrEndInAnError) {
  WritableModel model(GetParam());
  ASSERT_FALSE(model.bytes().empty()) << "this test needs " << model.path() << " (`couplet pull` gets it, "
                                      << "COUPLET_MODELS names another folder)";
  const Outcomes outcomes = mutate(model.bytes(), 1);
  EXPECT_GT(outcomes.opened, kMutations / 20);
  EXPECT_GT(outcomes.refused, kMutations / 20);
}

INSTANTIATE_TEST_SUITE_P(Gguf, RealModels, testing::Values("smollm2.gguf", "gemma3.gguf"),
                         [](const auto& model) {
                           const std::string name = model.param;
                           return name.substr(0, name.find('.'));
                         });

TEST(SyntheticFiles, MutatedOpenOrEndInAnError) {
  GgufBuilder one;
  one.add("general.architecture", "llama").add("general.alignment", 32u).add("yes", true).add("f64", 1.0);
  one.add_tensor("blk.0.attn_q.weight", {4, 4}, std::vector<float>(16, 1.f));
  GgufBuilder two;
  two.version = 2;
  two.add("words", std::vector<std::string>{"a", "", "ccc"}).add("ints", std::vector<std::int64_t>{1, -1});
  two.add("bools", std::vector<bool>{true, false}).add("doubles", std::vector<double>{1e300, -0.0});
  two.add_tensor("k", TensorType::q6_k, {256, 2}).add_tensor("h", TensorType::bf16, {3, 1, 2, 5});
  for (const GgufBuilder& builder : {one, two}) {
    auto bytes = builder.build();
    Outcomes all;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      const Outcomes outcomes = mutate(bytes, seed);
      all.opened += outcomes.opened;
      all.refused += outcomes.refused;
    }
    EXPECT_GT(all.opened, 10 * kMutations / 50);
    EXPECT_GT(all.refused, 10 * kMutations / 2);
  }
}

}  // namespace
}  // namespace couplet::formats
