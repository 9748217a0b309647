#include "formats/gguf_writer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "formats/gguf.h"
#include "formats/gguf_builder.h"

namespace couplet::formats {
namespace {

Tensor shaped(std::string_view name, std::array<std::uint64_t, 4> dims, int num_dims) {
  return {.name = name, .type = TensorType::f32, .dims = dims, .num_dims = num_dims, .bytes = {}};
}

std::vector<std::byte> with_data(const GgufWriter& writer) {
  std::vector<std::byte> file = writer.header();
  file.resize(writer.file_bytes());
  return file;
}

TEST(GgufWriter, WritesWhatTheReaderReads) {
  GgufWriter writer;
  writer.set("general.architecture", "llama");
  writer.set("a.u8", std::uint8_t{200});
  writer.set("a.i16", std::int16_t{-300});
  writer.set("a.u64", std::uint64_t{1} << 60U);
  writer.set("a.float", 0.1F);
  writer.set("a.double", 0.1);
  writer.set("a.bool", true);
  writer.set("a.texts", std::vector<std::string>{"", "x\ny", "\u65E5"});
  writer.set("a.ints", std::vector<std::int32_t>{-1, 0, 7});
  writer.set("a.floats", std::vector<float>{0.5F, -2.0F});
  writer.set("a.none", std::vector<std::string>());
  writer.set("a.bool", false);  // again
  writer.add_tensor(shaped("matrix", {64, 3, 1, 1}, 2), TensorType::q8_0);
  writer.add_tensor(shaped("vector", {5, 1, 1, 1}, 1), TensorType::f32);
  writer.add_tensor(shaped("experts", {32, 2, 3, 1}, 3), TensorType::q4_0);
  std::vector<std::byte> bytes = with_data(writer);
  EXPECT_EQ(bytes.size() % GgufWriter::kAlignment, 0u);
  bytes[writer.data_offset(1)] = std::byte{42};

  const GgufFile file(bytes);
  EXPECT_EQ(file.format(), "GGUF v3");
  EXPECT_EQ(file.keys().size(), 11u);
  EXPECT_EQ(file.get_string("general.architecture"), "llama");
  EXPECT_EQ(file.get_uint("a.u8"), 200u);
  EXPECT_EQ(file.get_uint("a.u64"), std::uint64_t{1} << 60U);
  EXPECT_EQ(file.get_float("a.float"), static_cast<double>(0.1F));
  EXPECT_EQ(file.get_float("a.double"), 0.1);
  EXPECT_EQ(file.get_bool("a.bool"), false);
  EXPECT_EQ(file.get_strings("a.texts"), (std::vector<std::string_view>{"", "x\ny", "\u65E5"}));
  EXPECT_EQ(file.get_ints("a.ints"), (std::vector<std::int64_t>{-1, 0, 7}));
  EXPECT_EQ(file.get_floats("a.floats"), (std::vector<float>{0.5F, -2.0F}));
  EXPECT_EQ(file.get_strings("a.none"), std::vector<std::string_view>());
  ASSERT_EQ(file.tensors().size(), 3u);
  const Tensor& matrix = file.tensors()[0];
  EXPECT_EQ(matrix.name, "matrix");
  EXPECT_EQ(matrix.type, TensorType::q8_0);
  EXPECT_EQ(matrix.dims, (std::array<std::uint64_t, 4>{64, 3, 1, 1}));
  EXPECT_EQ(matrix.bytes.size(), 3u * 2 * 34);
  EXPECT_EQ(file.tensors()[1].num_dims, 1);
  EXPECT_EQ(file.tensors()[1].bytes[0], std::byte{42});
  EXPECT_EQ(file.tensors()[2].num_dims, 3);
  EXPECT_EQ(writer.data_offset(2) % GgufWriter::kAlignment, 0u);
}

TEST(GgufWriter, CopiesAnotherFilesMetadata) {
  GgufBuilder builder;
  builder.add("one.text", "x").add("one.number", std::int64_t{-5}).add("one.bools", std::vector<float>{1, 2});
  builder.add("one.words", std::vector<std::string>{"a", "", "bc"});
  const auto from = builder.build();
  const GgufFile source(from);
  GgufWriter writer;
  for (const GgufMetadata::Entry& entry : source.metadata().entries()) writer.set(entry);
  writer.set("one.text", "another");
  const auto bytes = with_data(writer);
  const GgufFile copy(bytes);
  EXPECT_EQ(copy.keys(), source.keys());
  EXPECT_EQ(copy.get_string("one.text"), "another");
  for (std::size_t i = 1; i < source.metadata().entries().size(); ++i) {
    const auto &a = source.metadata().entries()[i], &b = copy.metadata().entries()[i];
    EXPECT_EQ(a.type, b.type);
    EXPECT_EQ(a.count, b.count);
    EXPECT_EQ(a.is_array, b.is_array);
    ASSERT_EQ(a.bytes.size(), b.bytes.size());
    EXPECT_EQ(std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()), 0);
  }
}

}  // namespace
}  // namespace couplet::formats
