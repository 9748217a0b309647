// One named safetensors file a lie: each must end in one clear error that names what is wrong.

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "couplet/error.h"
#include "formats/printable.h"
#include "formats/safetensors.h"
#include "formats/safetensors_builder.h"

namespace couplet::formats {
namespace {

using Builder = SafetensorsBuilder;

Builder raw(const std::string& header) {
  Builder builder;
  builder.raw_header = header;
  return builder;
}

Builder entry(const std::string& json, std::size_t data_bytes = 8) { return Builder().entry("t", json).data(data_bytes); }

Builder with_length(std::uint64_t length) {
  Builder builder = Builder().add("t", "F32", {2}, 8);
  builder.claimed_length = length;
  return builder;
}

struct Lie {
  const char* name;
  Builder file;
  const char* message;  // the whole or a part of it
};
void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }

std::vector<Lie> header_lies() {
  return {
      {"LengthOfAll", with_length(~0ull), "[safetensors] header: expected a length of at most "},
      {"LengthOneMore", with_length(1ull << 20), "[safetensors] header: expected a length of at most "},
      {"LengthShort", with_length(5), "[safetensors] header: expected JSON, got a problem: "},
      {"LengthZero", with_length(0), "[safetensors] header: expected JSON, got a problem: "},
      {"NoJson", raw("tensors"), "[safetensors] header: expected JSON, got a problem: "},
      {"NotUtf8", raw("{\"\xff\":1}"), "[safetensors] header: expected JSON, got a problem: "},
      {"ArrayNotObject", raw("[]"), "[safetensors] header: expected a JSON object, got an array"},
      {"Deep", raw("{\"t\":" + std::string(100'000, '[') + std::string(100'000, ']') + "}"),
       "[safetensors] header: expected JSON, got a problem: "},
      {"NoTensorsButData", Builder().data(3), "[safetensors] data: expected 0 bytes, all of some tensor, the file has 3"},
  };
}

std::vector<Lie> entry_lies() {
  const std::string good = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  return {
      {"Twice", entry(good).entry("t", good), "[safetensors] tensor \"t\": expected it once, file says it several times"},
      {"Null", entry("null"), "[safetensors] tensor \"t\": expected an object, file says null"},
      {"Number", entry("7"), "[safetensors] tensor \"t\": expected an object, file says the number 7"},
      {"EmptyName", Builder().add("", "F32", {2}, 8), "[safetensors] tensor \"\": expected a name of 1 to 255 bytes"},
      {"LongName", Builder().add(std::string(256, 'n'), "F32", {2}, 8), "expected a name of 1 to 255 bytes"},
      {"NameWithEscape", Builder().add("a\\u001b[2J", "F32", {2}, 8), "[safetensors] tensor \"a\\x1b[2J\": expected a name"},
      {"NoDtype", entry(R"({"shape":[2],"data_offsets":[0,8]})"), "[safetensors] tensor \"t\" \"dtype\": expected one, file says nothing"},
      {"DtypeUnknown", entry(R"({"dtype":"Q4","shape":[2],"data_offsets":[0,8]})"),
       "[safetensors] tensor \"t\" \"dtype\": expected one that safetensors knows, file says \"Q4\""},
      {"DtypeNumber", entry(R"({"dtype":4,"shape":[2],"data_offsets":[0,8]})"), "\"dtype\": expected a string, file says the number 4"},
      {"NoShape", entry(R"({"dtype":"F32","data_offsets":[0,8]})"), "\"shape\": expected one, file says nothing"},
      {"ShapeZero", entry(R"({"dtype":"F32","shape":[2,0],"data_offsets":[0,0]})", 0), "\"shape\": expected dimensions of at least 1"},
      {"ShapeNegative", entry(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"), "\"shape\": expected an array of whole numbers"},
      {"ShapeFraction", entry(R"({"dtype":"F32","shape":[2.0],"data_offsets":[0,8]})"), "\"shape\": expected an array of whole numbers"},
      {"ShapeOverflows", entry(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0),
       "\"shape\": expected dimensions of at least 1 with a product inside 64 bits, file says 4294967296 x 4294967296"},
      {"ShapeOfFive", entry(R"({"dtype":"F32","shape":[1,1,1,1,2],"data_offsets":[0,8]})"),
       "\"shape\": expected at most 4 dimensions, file says 5"},
      {"ShapeTooLarge", entry(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"),
       "\"data_offsets\": expected 12 bytes for 3 of F32, file says 0 to 8"},
      {"ShapeTooSmall", entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,8]})"),
       "\"data_offsets\": expected 4 bytes for 1 of F32, file says 0 to 8"},
      {"NoOffsets", entry(R"({"dtype":"F32","shape":[2]})"), "\"data_offsets\": expected two, file says nothing"},
      {"OneOffset", entry(R"({"dtype":"F32","shape":[2],"data_offsets":[8]})"), "\"data_offsets\": expected two"},
      {"OffsetsTurned", entry(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"), "\"data_offsets\": expected 8 bytes"},
      {"OffsetsThatOverflow", entry(R"({"dtype":"F32","shape":[2],"data_offsets":[18446744073709551612,4]})"),
       "\"data_offsets\": expected 8 bytes"},
      {"OutsideTheData", entry(good, 7), "[safetensors] tensor \"t\": expected bytes inside the 7 of data, file says 0 to 8"},
      {"HoleBefore", entry(R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})", 12),
       "[safetensors] tensor \"t\": expected bytes from 0 on, with no overlap and no hole, file says 4 to 12"},
      {"HoleBehind", entry(good, 9), "[safetensors] data: expected 8 bytes, all of some tensor, the file has 9"},
      {"Overlap", entry(good).entry("u", R"({"dtype":"F32","shape":[2],"data_offsets":[4,12]})").data(4),
       "[safetensors] tensor \"u\": expected bytes from 8 on"},
      {"SameBytes", entry(good).entry("u", good), "expected bytes from 8 on"},
  };
}

class SafetensorsLies : public ::testing::TestWithParam<Lie> {};

TEST_P(SafetensorsLies, EndInOneClearError) {
  try {
    read_safetensors(GetParam().file.build());
    FAIL() << "the file was taken for honest";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::format) << message;
    EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
    EXPECT_TRUE(is_printable(message)) << message;
  }
}

std::string name_of(const ::testing::TestParamInfo<Lie>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Header, SafetensorsLies, ::testing::ValuesIn(header_lies()), name_of);
INSTANTIATE_TEST_SUITE_P(Entry, SafetensorsLies, ::testing::ValuesIn(entry_lies()), name_of);

TEST(SafetensorsLies, AShortFileIsRefused) {
  const std::vector<std::byte> bytes = Builder().add("t", "F32", {2}, 8).build();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(read_safetensors(std::span(bytes).first(size)), Error) << size;
}

TEST(SafetensorsLies, TheHonestFileOpens) {
  const std::vector<std::byte> bytes = Builder()
                                           .entry("__metadata__", R"({"format":"pt"})")
                                           .add("b", "BF16", {3, 2}, 12)
                                           .add("a", "I64", {}, 8)
                                           .build();
  const SafetensorsFile file = read_safetensors(bytes);
  ASSERT_EQ(file.tensors.size(), 2u);
  EXPECT_EQ(file.tensors[0].name, "b");
  EXPECT_EQ(file.tensors[0].dtype, "BF16");
  EXPECT_EQ(file.tensors[0].shape_text(), "3 x 2");
  EXPECT_EQ(file.tensors[1].bytes.data(), bytes.data() + bytes.size() - 8);
  EXPECT_EQ(file.header.size(), bytes.size() - 20);
}

}  // namespace
}  // namespace couplet::formats
