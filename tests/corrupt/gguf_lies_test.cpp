// One named GGUF file a lie: each must end in one clear error that names what is wrong, and the honest file
// that the lies start from must open.

#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "couplet/error.h"
#include "formats/checkpoint_file.h"
#include "formats/checkpoint_testing.h"
#include "formats/gguf_builder.h"
#include "formats/printable.h"

namespace couplet::formats {
namespace {

constexpr std::uint32_t kU32 = 4, kF32 = 6, kBool = 7, kString = GgufBuilder::kString,
                        kArray = GgufBuilder::kArray;
constexpr std::uint32_t kTypeF32 = 0, kTypeQ8K = 15, kTypeQ4K = 12;
constexpr std::uint64_t kHuge = ~std::uint64_t{0};

GgufBuilder base() {
  GgufBuilder builder;
  builder.add("general.architecture", "llama");
  return builder;
}

// An entry of the tensor table and `data_bytes` of data.
GgufBuilder with_tensor(const std::vector<std::uint64_t>& dims, std::uint32_t type = kTypeF32,
                        std::uint64_t offset = 0, std::size_t data_bytes = 64) {
  return base().raw_tensor("t", dims, type, offset).raw_data(data_bytes);
}

ByteWriter array_of(std::uint32_t type, std::uint64_t count) { return ByteWriter().put(type).put(count); }

GgufBuilder with(std::function<void(GgufBuilder&)> change) {
  GgufBuilder builder = base();
  change(builder);
  return builder;
}

struct Lie {
  const char* name;
  GgufBuilder file;
  ErrorKind kind;
  const char* message;  // the whole or a part of it
};
void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }

std::vector<Lie> header_lies() {
  return {
      {"Magic", with([](auto& b) { b.magic = "GGML"; }), ErrorKind::format,
       "[gguf] header: expected the magic \"GGUF\", file says \"GGML\""},
      {"MagicThatIsNoText", with([](auto& b) { b.magic = "\x1b[2J"; }), ErrorKind::format,
       "[gguf] header: expected the magic \"GGUF\", file says \"\\x1b[2J\""},
      {"BigEndianMagic", with([](auto& b) { b.magic = "FUGG"; }), ErrorKind::unsupported,
       "[gguf] header: expected a little-endian file, this one is big-endian"},
      {"BigEndianVersion", with([](auto& b) { b.version = 0x0300'0000; }), ErrorKind::unsupported,
       "[gguf] header: expected a little-endian file, this one is big-endian"},
      {"Version0", with([](auto& b) { b.version = 0; }), ErrorKind::unsupported,
       "[gguf] header: expected version 2 or 3, file says 0"},
      {"Version1", with([](auto& b) { b.version = 1; }), ErrorKind::unsupported,
       "[gguf] header: expected version 2 or 3, file says 1"},
      {"Version4", with([](auto& b) { b.version = 4; }), ErrorKind::unsupported,
       "[gguf] header: expected version 2 or 3, file says 4"},
      {"NoKeys", GgufBuilder(), ErrorKind::format, "[gguf] header: expected at least one key, file says 0"},
      {"KeyCount", with([](auto& b) { b.claimed_keys = kHuge; }), ErrorKind::format,
       "[gguf] header: expected at most 5 keys in the bytes left, file says 18446744073709551615"},
      {"OneKeyTooMany", with([](auto& b) { b.add("x", "0123456789abcdef").claimed_keys = 3; }),
       ErrorKind::format, "[gguf] key number 3: expected "},
      {"OneTensorTooMany", with([](auto& b) { b.add_tensor("t", {16}, {}).claimed_tensors = 2; }),
       ErrorKind::format, "[gguf] tensor number 2: expected a name of 1 to 255 bytes, file says 0"},
      {"TensorCount", with([](auto& b) { b.claimed_tensors = 1ull << 62; }), ErrorKind::format,
       "[gguf] header: expected at most 0 tensors in the bytes left, file says 4611686018427387904"},
  };
}

std::vector<Lie> key_lies() {
  const std::string long_key(65'536, 'k');
  const auto strings = array_of(kString, 2).put_string("one").put(std::uint64_t{1} << 40);
  return {
      {"EmptyKey", base().add("", 1), ErrorKind::format,
       "[gguf] key number 2: expected a name of 1 to 65535 bytes, file says 0"},
      {"LongKey", base().add(long_key, 1), ErrorKind::format,
       "[gguf] key number 2: expected a name of 1 to 65535 bytes, file says 65536"},
      {"KeyNotUtf8", base().add("a\xff\xfe", 1), ErrorKind::format,
       "[gguf] key \"a\\xff\\xfe\": expected a name in UTF-8 without control characters"},
      {"KeyWithEscape", base().add("a\x1b[31m", 1), ErrorKind::format,
       "[gguf] key \"a\\x1b[31m\": expected a name in UTF-8 without control characters"},
      {"KeyTwice", base().add("x", 1).add("x", 2), ErrorKind::format,
       "[gguf] key \"x\": expected one value, file has several"},
      {"ValueType", base().raw_key("x", 13, {}), ErrorKind::format,
       "[gguf] key \"x\": expected a value type below 13, file says 13"},
      {"ElementType", base().raw_key("x", kArray, array_of(0xffff'ffff, 1).bytes), ErrorKind::format,
       "[gguf] key \"x\": expected a value type below 13, file says 4294967295"},
      {"ArrayOfArrays", base().raw_key("x", kArray, array_of(kArray, 1).bytes), ErrorKind::unsupported,
       "[gguf] key \"x\": expected an array of plain values, file has an array of arrays"},
      {"Bool2", base().raw_key("x", kBool, {std::byte{2}}), ErrorKind::format,
       "[gguf] key \"x\": expected a bool of 0 or 1, file says 2"},
      {"BoolsWithA255", base().raw_key("x", kArray, array_of(kBool, 3).put('\0').put('\1').put('\xff').bytes),
       ErrorKind::format, "[gguf] key \"x\": expected a bool of 0 or 1, file says 255"},
      {"StringLength", base().raw_key("x", kString, ByteWriter().put(std::uint64_t{1} << 40).bytes),
       ErrorKind::format, "[gguf] key \"x\": expected 1099511627776 more bytes, the file has "},
      {"StringLengthOfAll", base().raw_key("x", kString, ByteWriter().put(kHuge).bytes), ErrorKind::format,
       "[gguf] key \"x\": expected 18446744073709551615 more bytes, the file has "},
      {"ArrayCount", base().raw_key("x", kArray, array_of(kU32, 1ull << 60).bytes), ErrorKind::format,
       "[gguf] key \"x\": expected at most "},
      {"ArrayCountThatOverflows", base().raw_key("x", kArray, array_of(kF32, (1ull << 62) + 1).bytes),
       ErrorKind::format, "[gguf] key \"x\": expected at most "},
      {"StringArrayCount", base().raw_key("x", kArray, array_of(kString, 1ull << 60).bytes),
       ErrorKind::format, "[gguf] key \"x\": expected at most "},
      {"StringInArray", base().raw_key("x", kArray, strings.bytes), ErrorKind::format,
       "[gguf] key \"x\": expected 1099511627776 more bytes, the file has "},
      {"ArchitectureNoString", GgufBuilder().add("general.architecture", 1u), ErrorKind::format,
       "[gguf] key \"general.architecture\": expected a string, file has u32"},
      {"Alignment0", base().add("general.alignment", 0u), ErrorKind::format,
       "[gguf] header: expected general.alignment to be a power of two from 8 to 65536, file says 0"},
      {"Alignment4", base().add("general.alignment", 4u), ErrorKind::format, "file says 4"},
      {"Alignment48", base().add("general.alignment", 48u), ErrorKind::format, "file says 48"},
      {"Alignment2To31", base().add("general.alignment", 1u << 31), ErrorKind::format,
       "file says 2147483648"},
      {"Alignment2To63", base().add("general.alignment", 1ull << 63), ErrorKind::format,
       "file says 9223372036854775808"},
      {"AlignmentNegative", base().add("general.alignment", -32), ErrorKind::format,
       "[gguf] key \"general.alignment\": expected a number from 0"},
      {"AlignmentText", base().add("general.alignment", "32"), ErrorKind::format,
       "[gguf] key \"general.alignment\": expected an integer, file has string"},
  };
}

std::vector<Lie> tensor_lies() {
  const std::string long_name(256, 'n');
  auto aligned = base().add("general.alignment", 64u).raw_tensor("t", {1}, kTypeF32, 32).raw_data(128);
  aligned.alignment = 64;
  return {
      {"EmptyTensorName", base().raw_tensor("", {1}, kTypeF32, 0).raw_data(32), ErrorKind::format,
       "[gguf] tensor number 1: expected a name of 1 to 255 bytes, file says 0"},
      {"LongTensorName", base().raw_tensor(long_name, {1}, kTypeF32, 0).raw_data(32), ErrorKind::format,
       "[gguf] tensor number 1: expected a name of 1 to 255 bytes, file says 256"},
      {"TensorNameNotUtf8", base().raw_tensor("\xc0\x80", {1}, kTypeF32, 0).raw_data(32), ErrorKind::format,
       "[gguf] tensor \"\\xc0\\x80\": expected a name in UTF-8 without control characters"},
      {"TensorNameWithNewline", base().raw_tensor("a\nb", {1}, kTypeF32, 0).raw_data(32), ErrorKind::format,
       "[gguf] tensor \"a\\x0ab\": expected a name in UTF-8 without control characters"},
      {"TensorTwice", with_tensor({1}).raw_tensor("t", {1}, kTypeF32, 32), ErrorKind::format,
       "[gguf] tensor \"t\": expected one of this name, file has several"},
      {"NoDims", with_tensor({}), ErrorKind::format,
       "[gguf] tensor \"t\": expected 1 to 4 dimensions, file says 0"},
      {"FiveDims", with_tensor({1, 1, 1, 1, 1}), ErrorKind::format,
       "[gguf] tensor \"t\": expected 1 to 4 dimensions, file says 5"},
      {"DimOf0", with_tensor({4096, 0}), ErrorKind::format,
       "[gguf] tensor \"t\": expected dimensions of at least 1, file says 4096 x 0"},
      {"DimsThatOverflowSigned", with_tensor({(1ull << 63) - 1, 2}), ErrorKind::format,
       "[gguf] tensor \"t\": expected at most "},
      {"DimsThatWrapTo0", with_tensor({1ull << 32, 1ull << 32}), ErrorKind::format,
       "bytes of data, file says 4294967296 x 4294967296 of F32"},
      {"DimsThatWrapToASmallSize", with_tensor({(1ull << 62) + 1}), ErrorKind::format,
       "bytes of data, file says 4611686018427387905 of F32"},
      {"DimsThatWrapInTheLastOne", with_tensor({1ull << 16, 1ull << 16, 1ull << 16, (1ull << 16) + 1}),
       ErrorKind::format, "[gguf] tensor \"t\": expected at most "},
      {"Dim2To42", with_tensor({(1ull << 42) + 1}), ErrorKind::format,
       "bytes of data, file says 4398046511105 of F32"},
      {"OneValueTooMany", with_tensor({17}), ErrorKind::format,
       "[gguf] tensor \"t\": expected data inside the 64 bytes of tensor data, file says 68 bytes at 0"},
      {"TensorType", with_tensor({1}, 99), ErrorKind::format,
       "[gguf] tensor \"t\": expected a type that this engine reads, file says number 99"},
      {"TensorTypeGivenUp", with_tensor({1}, 4), ErrorKind::format,
       "[gguf] tensor \"t\": expected a type that this engine reads, file says number 4"},
      {"TensorTypeOfOthers", with_tensor({256}, kTypeQ8K), ErrorKind::unsupported,
       "[gguf] tensor \"t\": expected a type that this engine reads, file says Q8_K"},
      {"KQuantRowOf576", with_tensor({576, 256}, kTypeQ4K, 0, 576 * 144), ErrorKind::format,
       "[gguf] tensor \"t\": expected rows of a multiple of 256 values for Q4_K, file says 576 x 256"},
      {"KQuantRowOf640", with_tensor({640, 2}, kTypeQ4K, 0, 640), ErrorKind::format,
       "[gguf] tensor \"t\": expected rows of a multiple of 256 values for Q4_K, file says 640 x 2"},
      {"OffsetNotAligned", with_tensor({1}, kTypeF32, 4), ErrorKind::format,
       "[gguf] tensor \"t\": expected an offset that is a multiple of 32, file says 4"},
      {"OffsetOfAnotherAlignment", aligned, ErrorKind::format,
       "[gguf] tensor \"t\": expected an offset that is a multiple of 64, file says 32"},
      {"OffsetAtTheEnd", with_tensor({1}, kTypeF32, 64), ErrorKind::format,
       "[gguf] tensor \"t\": expected data inside the 64 bytes of tensor data, file says 4 bytes at 64"},
      {"OffsetThatWraps", with_tensor({16}, kTypeF32, kHuge - 31), ErrorKind::format,
       "file says 64 bytes at 18446744073709551584"},
      {"NoData", with_tensor({1}, kTypeF32, 0, 0), ErrorKind::format,
       "[gguf] tensor \"t\": expected data inside the 0 bytes of tensor data, file says 4 bytes at 0"},
      {"SharedBytes", with_tensor({9}).raw_tensor("u", {1}, kTypeF32, 32), ErrorKind::format,
       "[gguf] tensor \"u\": expected bytes of its own from 36 on, file says offset 32"},
      {"SameBytes", with_tensor({1}).raw_tensor("u", {1}, kTypeF32, 0), ErrorKind::format,
       "expected bytes of its own from 4 on, file says offset 0"},
  };
}

class GgufLies : public testing::TestWithParam<Lie> {};

TEST_P(GgufLies, EndInAnErrorThatNamesThem) {
  const auto bytes = GetParam().file.build();
  try {
    CheckpointFile::parse(bytes);
    FAIL() << "the file was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), GetParam().kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(GetParam().message), std::string::npos) << error.what();
    EXPECT_TRUE(is_printable(error.what()));
  }
}

constexpr auto kName = [](const auto& lie) { return std::string(lie.param.name); };
INSTANTIATE_TEST_SUITE_P(Header, GgufLies, testing::ValuesIn(header_lies()), kName);
INSTANTIATE_TEST_SUITE_P(Keys, GgufLies, testing::ValuesIn(key_lies()), kName);
INSTANTIATE_TEST_SUITE_P(Tensors, GgufLies, testing::ValuesIn(tensor_lies()), kName);

// The file without the lie: what the cases above change must be the reason of their errors.
TEST(GgufLies, TheHonestFilesOpen) {
  for (const GgufBuilder& file :
       {base(), with_tensor({1}), with_tensor({16}), with_tensor({1}, kTypeF32, 32),
        with_tensor({256, 1}, kTypeQ4K, 0, 144), base().add(std::string(65'535, 'k'), 1),
        with_tensor({8}).raw_tensor("u", {1}, kTypeF32, 32)}) {
    const auto bytes = file.build();
    EXPECT_GT(touch_everything(*CheckpointFile::parse(bytes)), 0u);
  }
}

// A file of all kinds of values, cut anywhere: its last byte belongs to a tensor, so no prefix is a whole
// file.
TEST(GgufPrefixes, NoneIsAFile) {
  auto builder = base();
  builder.add("u8", std::uint8_t{1})
      .add("f64", 0.5)
      .add("yes", true)
      .add("words", std::vector<std::string>{"a", "bc"});
  builder.add("ints", std::vector<int>{1, 2, 3}).add_tensor("a", {8}, std::vector<float>(8, 1.f));
  builder.add_tensor("b", TensorType::q8_0, {32, 3}, std::vector<std::byte>(102));
  builder.add_tensor("c", {512}, std::vector<float>(512, 1.f));
  const auto bytes = builder.build();
  ASSERT_GT(bytes.size(), 2'000u);
  EXPECT_GT(touch_everything(*CheckpointFile::parse(bytes)), 0u);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::byte> prefix(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW(CheckpointFile::parse(prefix), Error) << size;
  }
}

TEST(GgufPrefixes, ShortFilesSayHowManyBytesAreMissing) {
  const auto bytes = base().build();
  for (const auto& [size, message] : std::vector<std::pair<std::size_t, std::string>>{
           {0, "[gguf] header: expected 4 more bytes, the file has 0 left"},
           {3, "[gguf] header: expected 4 more bytes, the file has 3 left"},
           {4, "[gguf] header: expected 4 more bytes, the file has 0 left"},
           {7, "[gguf] header: expected 4 more bytes, the file has 3 left"},
           {8, "[gguf] header: expected 8 more bytes, the file has 0 left"},
           {23, "[gguf] header: expected 8 more bytes, the file has 7 left"},
           {24, "[gguf] header: expected at most 0 keys in the bytes left, file says 1"}}) {
    try {
      CheckpointFile::parse(std::span(bytes).first(size));
      FAIL() << size;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), message);
    }
  }
}

}  // namespace
}  // namespace couplet::formats
