#include "formats/gguf.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "couplet/error.h"
#include "formats/checkpoint_testing.h"
#include "formats/gguf_builder.h"

namespace couplet::formats {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string_view>;

// The message of the couplet::Error that `action` throws; "" if it throws none.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

GgufBuilder tiny(const char* architecture = "llama") {
  GgufBuilder builder;
  builder.add("general.architecture", architecture);
  return builder;
}

TEST(Gguf, NumbersOfEveryWidthConvertWhereTheyFit) {
  const auto bytes = tiny()
                         .add("u8", std::uint8_t{200})
                         .add("i8", std::int8_t{100})
                         .add("u16", std::uint16_t{60'000})
                         .add("i16", std::int16_t{30'000})
                         .add("u32", std::uint32_t{4'000'000'000})
                         .add("i32", std::int32_t{2'000'000'000})
                         .add("u64", std::numeric_limits<std::uint64_t>::max())
                         .add("i64", std::numeric_limits<std::int64_t>::max())
                         .add("negative", std::int8_t{-1})
                         .add("f32", 0.1f)
                         .add("f64", 0.1)
                         .add("yes", true)
                         .add("no", false)
                         .build();
  const auto file = CheckpointFile::parse(bytes);
  EXPECT_EQ(file->get_uint("u8"), 200u);
  EXPECT_EQ(file->get_uint("i8"), 100u);
  EXPECT_EQ(file->get_uint("u16"), 60'000u);
  EXPECT_EQ(file->get_uint("i16"), 30'000u);
  EXPECT_EQ(file->get_uint("u32"), 4'000'000'000u);
  EXPECT_EQ(file->get_uint("i32"), 2'000'000'000u);
  EXPECT_EQ(file->get_uint("u64"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(file->get_uint("i64"), 0x7fffffffffffffffu);
  EXPECT_EQ(error_of([&] { file->get_uint("negative"); }),
            "[gguf] key \"negative\": expected a number from 0 to 18446744073709551615, file says -1");
  EXPECT_EQ(file->get_float("f32"), double{0.1f});
  EXPECT_EQ(file->get_float("f64"), 0.1);
  EXPECT_EQ(file->get_bool("yes"), true);
  EXPECT_EQ(file->get_bool("no"), false);
  EXPECT_EQ(file->get_uint("missing"), std::nullopt);
  EXPECT_EQ(file->keys().size(), 14u);
  EXPECT_EQ(file->keys()[1], "u8");
}

TEST(Gguf, TextAndArrays) {
  const auto bytes = tiny()
                         .add("text", std::string_view("a\0b", 3))
                         .add("empty", "")
                         .add("strings", std::vector<std::string>{"", "two", "3"})
                         .add("none", std::vector<std::string>{})
                         .add("ints", std::vector<std::int32_t>{-1, 0, 7})
                         .add("large", std::vector<std::uint64_t>{1, 1ull << 63})
                         .add("bools", std::vector<bool>{true, false})
                         .add("floats", std::vector<float>{0.5f, -1.f})
                         .add("doubles", std::vector<double>{0.25, std::numeric_limits<double>::infinity()})
                         .add("too_large", std::vector<double>{1e39})
                         .build();
  const auto file = CheckpointFile::parse(bytes);
  EXPECT_EQ(file->get_string("text"), std::string_view("a\0b", 3));
  EXPECT_EQ(file->get_string("empty"), "");
  EXPECT_EQ(file->get_strings("strings"), (Strings{"", "two", "3"}));
  EXPECT_EQ(file->get_strings("none"), Strings{});
  EXPECT_EQ(file->get_ints("ints"), (std::vector<std::int64_t>{-1, 0, 7}));
  EXPECT_EQ(file->get_ints("bools"), (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(file->get_floats("floats"), (std::vector<float>{0.5f, -1.f}));
  EXPECT_EQ(file->get_floats("doubles"), (std::vector<float>{0.25f, std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(file->get_strings("missing"), std::nullopt);
  EXPECT_EQ(
      error_of([&] { file->get_ints("large"); }),
      "[gguf] key \"large\": expected a number from -9223372036854775808 to 9223372036854775807, file says "
      "9223372036854775808");
  EXPECT_EQ(error_of([&] { file->get_floats("too_large"); }),
            "[gguf] key \"too_large\": expected numbers that fit f32, file has a larger one");
}

TEST(Gguf, AKeyOfAnotherKindNamesBothKinds) {
  const auto bytes = tiny()
                         .add("number", 1u)
                         .add("text", "x")
                         .add("ints", std::vector<int>{1})
                         .add("f", 1.f)
                         .add("b", true)
                         .build();
  const auto file = CheckpointFile::parse(bytes);
  const auto message = [](const char* key, const char* expected, const char* got) {
    return std::string("[gguf] key \"") + key + "\": expected " + expected + ", file has " + got;
  };
  EXPECT_EQ(error_of([&] { file->get_uint("text"); }), message("text", "an integer", "string"));
  EXPECT_EQ(error_of([&] { file->get_uint("ints"); }), message("ints", "an integer", "an array of i32"));
  EXPECT_EQ(error_of([&] { file->get_uint("b"); }), message("b", "an integer", "bool"));
  EXPECT_EQ(error_of([&] { file->get_uint("f"); }), message("f", "an integer", "f32"));
  EXPECT_EQ(error_of([&] { file->get_float("number"); }), message("number", "a float", "u32"));
  EXPECT_EQ(error_of([&] { file->get_bool("number"); }), message("number", "a bool", "u32"));
  EXPECT_EQ(error_of([&] { file->get_string("number"); }), message("number", "a string", "u32"));
  EXPECT_EQ(error_of([&] { file->get_strings("text"); }), message("text", "an array of strings", "string"));
  EXPECT_EQ(error_of([&] { file->get_ints("number"); }), message("number", "an array of integers", "u32"));
  EXPECT_EQ(error_of([&] { file->get_floats("ints"); }),
            message("ints", "an array of floats", "an array of i32"));
}

TEST(Gguf, TensorsPointAtTheirBytes) {
  std::vector<std::byte> codes(2 * 18, std::byte{0x5a});
  const auto bytes = tiny()
                         .add_tensor("norm", {3}, {1.f, 2.f, 3.f})
                         .add_tensor("cube", TensorType::q4_0, {32, 1, 2}, codes)
                         .add_tensor("last", TensorType::f16, {1, 2, 3, 4})
                         .build();
  const auto file = CheckpointFile::parse(bytes);
  ASSERT_EQ(file->tensors().size(), 3u);
  EXPECT_EQ(file->find("missing"), nullptr);
  EXPECT_EQ(file->file_bytes(), bytes.size());

  const Tensor* norm = file->find("norm");
  ASSERT_EQ(norm, &file->tensors()[0]);
  EXPECT_EQ(norm->num_dims, 1);
  EXPECT_EQ(norm->row_length(), 3u);
  EXPECT_EQ(norm->num_rows(), 1u);
  ASSERT_EQ(norm->bytes.size(), 12u);
  float values[3];
  dequantize(norm->type, norm->bytes.data(), 3, values);
  EXPECT_EQ(values[2], 3.f);

  const Tensor* cube = file->find("cube");
  ASSERT_EQ(cube, &file->tensors()[1]);
  EXPECT_EQ(cube->type, TensorType::q4_0);
  EXPECT_EQ(cube->num_dims, 3);
  EXPECT_EQ(cube->num_rows(), 2u);
  EXPECT_TRUE(std::ranges::equal(cube->bytes, codes));
  EXPECT_EQ(file->find("last")->num_rows(), 24u);
  EXPECT_EQ(file->find("last")->bytes.size(), 48u);
}

TEST(Gguf, VersionsAndAlignments) {
  auto builder = tiny();
  builder.version = 2;
  EXPECT_EQ(CheckpointFile::parse(builder.build())->format(), "GGUF v2");
  EXPECT_EQ(CheckpointFile::parse(tiny().build())->format(), "GGUF v3");
  for (const std::uint32_t alignment : {8u, 64u, 4096u, 65'536u}) {
    auto aligned = tiny().add("general.alignment", alignment);
    aligned.alignment = alignment;
    aligned.add_tensor("one", {1}, {1.f}).add_tensor("two", {1}, {2.f});
    const auto bytes = aligned.build();
    const auto file = CheckpointFile::parse(bytes);
    EXPECT_EQ(file->tensors()[1].bytes.data() - bytes.data(),
              file->tensors()[0].bytes.data() - bytes.data() + alignment);
    float value;
    dequantize(TensorType::f32, file->tensors()[1].bytes.data(), 1, &value);
    EXPECT_EQ(value, 2.f);
  }
}

TEST(Gguf, OnlyLlamaAndGraniteFilesHoldQueryAndKeyRowsInPairs) {
  for (const char* architecture : {"llama", "granite", "gemma3", "qwen2"}) {
    auto builder = tiny(architecture);
    for (const char* name :
         {"blk.0.attn_q.weight", "blk.12.attn_k.weight", "blk.3.attn_q.bias", "blk.3.attn_k.bias"}) {
      builder.add_tensor(name, {1}, {1.f});
    }
    for (const char* name :
         {"blk.0.attn_v.weight", "blk.0.attn_q_norm.weight", "blk.attn_q.weight", "attn_q.weight",
          "blk.0.attn_q.weight2", "x.blk.0.attn_q.weight", "blk.7", "blk.0x.attn_k.weight"}) {
      builder.add_tensor(name, {1}, {1.f});
    }
    const auto bytes = builder.build();
    const auto file = CheckpointFile::parse(bytes);
    ASSERT_EQ(file->tensors().size(), 12u);
    for (std::size_t i = 0; i < file->tensors().size(); ++i) {
      const bool pairs = i < 4 && (std::string(architecture) == "llama" || std::string(architecture) == "granite");
      EXPECT_EQ(file->tensors()[i].rope_order, pairs ? RopeOrder::pairs : RopeOrder::halves)
          << architecture << " " << file->tensors()[i].name;
    }
  }
}

TEST(Gguf, DeepseekFilesHoldTurnedRowsInPairs) {
  auto builder = tiny("deepseek2");
  const std::vector<std::string> names = {"blk.0.attn_q.weight", "blk.12.attn_q_b.weight", "blk.3.attn_kv_a_mqa.weight",
                                          "blk.0.attn_k_b.weight", "blk.0.attn_kv_b.weight", "blk.0.attn_q_a.weight"};
  for (const std::string& name : names) builder.add_tensor(name, {1}, {1.f});
  const auto bytes = builder.build();
  const auto file = CheckpointFile::parse(bytes);
  ASSERT_EQ(file->tensors().size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(file->tensors()[i].rope_order, i < 3 ? RopeOrder::pairs : RopeOrder::halves) << names[i];
}

TEST(Gguf, ManyNamesAreFoundAndManyStringsRead) {
  std::vector<std::string> words;
  auto builder = tiny();
  for (int i = 0; i < 3'000; ++i) {
    words.push_back("word" + std::to_string(i));
    builder.add_tensor("tensor" + std::to_string(i), {1}, {static_cast<float>(i)});
    builder.add("key" + std::to_string(i), i);
  }
  const auto bytes = builder.add("words", words).build();
  const auto file = CheckpointFile::parse(bytes);
  EXPECT_EQ(file->get_strings("words"), Strings(words.begin(), words.end()));
  for (std::size_t i = 0; i < 3'000; ++i) {
    EXPECT_EQ(file->find("tensor" + std::to_string(i)), &file->tensors()[i]);
    EXPECT_EQ(file->get_uint("key" + std::to_string(i)), i);
  }
}

TEST(Gguf, DroppingATensorOfTheCallersMemoryLosesNothing) {
  std::vector<float> values(8'192, 3.f);
  const auto bytes = tiny().add_tensor("t", {8'192}, values).build();
  const auto file = CheckpointFile::parse(bytes);
  file->drop(file->find("t")->bytes);
  file->read_ahead(file->find("t")->bytes);
  EXPECT_EQ(std::memcmp(file->find("t")->bytes.data(), values.data(), values.size() * sizeof(float)), 0);
}

// A folder of its own for each test, gone afterwards.
class GgufFiles : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  // Part `number` of `num_parts` as the split tool writes it.
  static GgufBuilder part(int number, int num_parts, int num_tensors) {
    GgufBuilder builder;
    if (number == 1) builder.add("general.architecture", "llama");
    builder.add("split.no", static_cast<std::uint16_t>(number - 1));
    builder.add("split.count", static_cast<std::uint16_t>(num_parts));
    builder.add("split.tensors.count", num_tensors);
    return builder;
  }
  fs::path path(const char* name) const { return folder_ / name; }
  std::string open_error(const char* name) const {
    return error_of([&] { CheckpointFile::open(path(name)); });
  }

  const fs::path folder_ =
      fs::path(testing::TempDir()) / (std::string("couplet_gguf_") + std::to_string(::getpid()) + "_" +
                                      testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(GgufFiles, AFileIsReadAndDroppedPagesComeBack) {
  const std::vector<float> values(4'000, 1.5f);
  tiny().add_tensor("a", {4'000}, values).add_tensor("b", {4'000}, values).write(path("m.gguf"));
  const auto file = CheckpointFile::open(path("m.gguf"));
  for (const Tensor& tensor : file->tensors()) {
    file->read_ahead(tensor.bytes);
    file->drop(tensor.bytes);
    EXPECT_EQ(std::memcmp(tensor.bytes.data(), values.data(), tensor.bytes.size()), 0);
  }
  EXPECT_EQ(file->file_bytes(), fs::file_size(path("m.gguf")));
}

TEST_F(GgufFiles, ASplitFileOpensFromAnyOfItsParts) {
  part(1, 3, 3)
      .add("x", 5u)
      .add_tensor("blk.0.attn_q.weight", {1}, {1.f})
      .write(path("m-00001-of-00003.gguf"));
  part(2, 3, 3).add_tensor("b", {1}, {2.f}).write(path("m-00002-of-00003.gguf"));
  part(3, 3, 3).add_tensor("c", {1}, {3.f}).write(path("m-00003-of-00003.gguf"));
  for (const char* name : {"m-00001-of-00003.gguf", "m-00003-of-00003.gguf"}) {
    const auto file = CheckpointFile::open(path(name));
    EXPECT_EQ(file->get_uint("x"), 5u);
    ASSERT_EQ(file->tensors().size(), 3u);
    EXPECT_EQ(file->tensors()[0].rope_order, RopeOrder::pairs);
    float value;
    dequantize(TensorType::f32, file->find("c")->bytes.data(), 1, &value);
    EXPECT_EQ(value, 3.f);
    EXPECT_EQ(file->file_bytes(), fs::file_size(path("m-00001-of-00003.gguf")) +
                                      fs::file_size(path("m-00002-of-00003.gguf")) +
                                      fs::file_size(path("m-00003-of-00003.gguf")));
    EXPECT_GT(touch_everything(*file), 0u);
  }
}

TEST_F(GgufFiles, APartThatIsMissingOrAnotherOnesIsNamed) {
  part(1, 2, 2).add_tensor("a", {1}, {1.f}).write(path("m-00001-of-00002.gguf"));
  EXPECT_NE(open_error("m-00001-of-00002.gguf").find("m-00002-of-00002.gguf\": expected a readable file"),
            std::string::npos);
  part(1, 2, 2).add_tensor("b", {1}, {1.f}).write(path("m-00002-of-00002.gguf"));
  EXPECT_EQ(open_error("m-00001-of-00002.gguf"),
            "[gguf] key \"split.no\": expected 1, file says 0 (in \"m-00002-of-00002.gguf\")");
  part(2, 3, 2).add_tensor("b", {1}, {1.f}).write(path("m-00002-of-00002.gguf"));
  EXPECT_EQ(open_error("m-00001-of-00002.gguf"),
            "[gguf] key \"split.count\": expected 2, file says 3 (in \"m-00002-of-00002.gguf\")");
  tiny().add_tensor("b", {1}, {1.f}).write(path("m-00002-of-00002.gguf"));
  EXPECT_EQ(open_error("m-00001-of-00002.gguf"),
            "[gguf] key \"split.count\": expected 2, file says nothing (in \"m-00002-of-00002.gguf\")");
  part(2, 2, 2).add_tensor("a", {1}, {1.f}).write(path("m-00002-of-00002.gguf"));
  EXPECT_EQ(open_error("m-00001-of-00002.gguf"),
            "[gguf] tensor \"a\": expected it in one part, several have it");
  part(2, 2, 2).write(path("m-00002-of-00002.gguf"));
  EXPECT_EQ(open_error("m-00001-of-00002.gguf"),
            "[gguf] key \"split.tensors.count\": expected the 1 tensors of all parts, file says 2");
}

TEST_F(GgufFiles, APartUnderAnotherNameIsRefused) {
  for (const char* name :
       {"m.gguf", "m-00001-of-00003.gguf", "m-00003-of-00002.gguf", "m-00000-of-00002.gguf", "m-1-of-2.gguf",
        "m-00001-of-00002.bin", "-of-00002.gguf", "m-0000x-of-00002.gguf"}) {
    part(1, 2, 2).add_tensor("a", {1}, {1.f}).write(path(name));
    EXPECT_EQ(open_error(name), std::string("[gguf] file \"") + name +
                                    "\": expected a name like NAME-00001-of-00002.gguf for one part of 2");
  }
  const auto bytes = part(1, 2, 2).build();
  EXPECT_EQ(error_of([&] { CheckpointFile::parse(bytes); }),
            "[gguf] key \"split.count\": expected a whole file, this is one part of several");
  for (const std::uint32_t count : {0u, 65'536u}) {
    const auto bad = tiny().add("split.count", count).build();
    EXPECT_EQ(error_of([&] { CheckpointFile::parse(bad); }),
              "[gguf] key \"split.count\": expected 1 to 65535, file says " + std::to_string(count));
  }
}

TEST_F(GgufFiles, AWholeFileMayBeNamedLikeAPart) {
  tiny().add_tensor("a", {1}, {1.f}).write(path("m-00001-of-00001.gguf"));
  EXPECT_EQ(CheckpointFile::open(path("m-00001-of-00001.gguf"))->tensors().size(), 1u);
}

}  // namespace
}  // namespace couplet::formats
