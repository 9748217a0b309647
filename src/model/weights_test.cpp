#include "model/weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "tests/property/tiny_model.h"

namespace couplet::model {
namespace {

namespace fs = std::filesystem;

class CopiesTest : public ::testing::Test {
 protected:
  std::unique_ptr<Weights> load(const CopyOptions& options) {
    return load_weights(*file_, config_, threads_, kernels::select_kernels(), options);
  }
  static bool same_panels(const Weights& a, const Weights& b) {
    return a.packed_bytes == b.packed_bytes && std::memcmp(a.panels.data(), b.panels.data(), a.packed_bytes) == 0 &&
           a.head.panels - a.panels.data() == b.head.panels - b.panels.data();
  }

  testing::TinyModelFile source_{testing::tiny_llama_k()};
  std::unique_ptr<formats::CheckpointFile> file_ = formats::CheckpointFile::open(source_.path());
  ModelConfig config_ = read_config(*file_);
  ThreadPool threads_{2};
  CopyOptions here_{.folder = source_.path().parent_path() / "packed", .least_bytes = 0, .spare_disk_bytes = 0};
};

TEST_F(CopiesTest, WrittenThenMappedTheyAreTheSameWeights) {
  const auto in_memory = load({});
  EXPECT_EQ(in_memory->copy.state, PackedCopyState::none);
  EXPECT_EQ(find_packed_copy(*file_, config_, here_).state, PackedCopyState::absent);
  const auto written = load(here_);
  EXPECT_EQ(written->copy.state, PackedCopyState::written);
  EXPECT_TRUE(same_panels(*written, *in_memory));
  const auto mapped = load(here_);
  EXPECT_EQ(mapped->copy.state, PackedCopyState::mapped);
  EXPECT_TRUE(same_panels(*mapped, *in_memory));
  const PackedCopy found = find_packed_copy(*file_, config_, here_);
  EXPECT_EQ(found.state, PackedCopyState::present);
  EXPECT_EQ(found.path, mapped->copy.path);
  EXPECT_EQ(found.bytes, fs::file_size(found.path) - PackedFile::kDataOffset);
}

TEST_F(CopiesTest, ADamagedCopyIsMadeAnew) {
  const auto in_memory = load({});
  const std::string path = load(here_)->copy.path;
  fs::resize_file(path, fs::file_size(path) / 2);
  EXPECT_EQ(load(here_)->copy.state, PackedCopyState::written);
  const auto mapped = load(here_);
  EXPECT_EQ(mapped->copy.state, PackedCopyState::mapped);
  EXPECT_TRUE(same_panels(*mapped, *in_memory));
}

TEST_F(CopiesTest, WhereNoneCanBeKeptMemoryHoldsThem) {
  std::ofstream(here_.folder.string()) << "no folder";
  const auto failed = load(here_);
  EXPECT_EQ(failed->copy.state, PackedCopyState::failed);
  EXPECT_NE(failed->copy.problem.find("[packed copy]"), std::string::npos) << failed->copy.problem;
  EXPECT_TRUE(same_panels(*failed, *load({})));
}

TEST_F(CopiesTest, SmallWeightsHaveNone) {
  here_.least_bytes = load({})->packed_bytes + 1;
  EXPECT_EQ(load(here_)->copy.state, PackedCopyState::none);
  EXPECT_EQ(find_packed_copy(*file_, config_, here_).state, PackedCopyState::none);
  EXPECT_FALSE(fs::exists(here_.folder));
}

TEST_F(CopiesTest, WhatIsNoFileHasNone) {
  std::ifstream in(source_.path(), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  file_ = formats::CheckpointFile::parse({reinterpret_cast<const std::byte*>(text.data()), text.size()});
  EXPECT_EQ(load(here_)->copy.state, PackedCopyState::none);
}

}  // namespace
}  // namespace couplet::model
