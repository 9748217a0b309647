#include "formats/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "couplet/error.h"
#include "formats/json.h"
#include "formats/printable.h"

namespace couplet::formats {
namespace {

static_assert(std::endian::native == std::endian::little, "the length of the header is read as it lies there");

constexpr std::uint64_t kLengthBytes = sizeof(std::uint64_t);
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the format's own limit
constexpr std::size_t kMostNameBytes = 255;
constexpr std::size_t kMostDims = 4;

struct Dtype {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr Dtype kDtypes[] = {{"F32", 4},     {"F16", 2}, {"BF16", 2}, {"F64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
                             {"F8_E8M0", 1}, {"I8", 1},  {"U8", 1},   {"I16", 2}, {"U16", 2},     {"I32", 4},
                             {"U32", 4},     {"I64", 8}, {"U64", 8},  {"BOOL", 1}};

[[noreturn]] void fail(const std::string& problem) { throw Error(ErrorKind::format, "[safetensors] " + problem); }

// Where the tensor's bytes begin and end among the data.
struct Range {
  std::uint64_t begin, end;
};

std::span<const std::byte> read_header(std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) fail("header: expected at least 8 bytes, the file has " + std::to_string(file.size()));
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  const std::uint64_t most = std::min<std::uint64_t>(file.size() - kLengthBytes, kMostHeaderBytes);
  if (length > most)
    fail("header: expected a length of at most " + std::to_string(most) + ", file says " + std::to_string(length));
  return file.subspan(kLengthBytes, length);
}

class EntryReader {
 public:
  EntryReader(const JsonObject& entry, SafeTensor& tensor) : entry_(entry), tensor_(tensor) {}

  Range read() {
    const std::uint64_t value_bytes = read_dtype();
    const std::uint64_t size = read_shape(value_bytes);
    const auto offsets = entry_.get_uints("data_offsets");
    if (!offsets || offsets->size() != 2) entry_.refuse("data_offsets", "two", offsets ? "another count" : "nothing");
    const Range range{offsets->at(0), offsets->at(1)};
    if (range.end < range.begin || range.end - range.begin != size)
      entry_.refuse("data_offsets", std::to_string(size) + " bytes for " + tensor_.shape_text() + " of " +
                                        std::string(tensor_.dtype),
                    std::to_string(range.begin) + " to " + std::to_string(range.end));
    return range;
  }

 private:
  std::uint64_t read_dtype() {
    const auto name = entry_.get_string("dtype");
    if (!name) entry_.refuse("dtype", "one", "nothing");
    const auto* known = std::ranges::find(kDtypes, *name, &Dtype::name);
    if (known == std::end(kDtypes)) entry_.refuse("dtype", "one that safetensors knows", in_quotes(*name));
    tensor_.dtype = known->name;
    return known->bytes;
  }

  std::uint64_t read_shape(std::uint64_t value_bytes) {
    const auto shape = entry_.get_uints("shape");
    if (!shape) entry_.refuse("shape", "one", "nothing");
    tensor_.shape = *shape;
    if (shape->size() > kMostDims)
      entry_.refuse("shape", "at most 4 dimensions", std::to_string(shape->size()));
    std::uint64_t size = value_bytes;
    for (const std::uint64_t dim : *shape) {
      if (dim == 0 || __builtin_mul_overflow(size, dim, &size))
        entry_.refuse("shape", "dimensions of at least 1 with a product inside 64 bits", tensor_.shape_text());
    }
    return size;
  }

  const JsonObject& entry_;
  SafeTensor& tensor_;
};

struct Placed {
  SafeTensor tensor;
  Range range;
};

std::vector<Placed> read_entries(const JsonObject& header) {
  std::vector<Placed> entries;
  for (const auto& [name, entry] : header.all_objects()) {
    if (name == "__metadata__") continue;
    if (name.empty() || name.size() > kMostNameBytes || !is_printable(name))
      fail("tensor " + in_quotes(name) + ": expected a name of 1 to 255 bytes without control characters");
    Placed& placed = entries.emplace_back();
    placed.tensor.name = name;
    placed.range = EntryReader(entry, placed.tensor).read();
  }
  return entries;
}

}  // namespace

std::string SafeTensor::shape_text() const {
  std::string text;
  for (const std::uint64_t dim : shape) text += (text.empty() ? "" : " x ") + std::to_string(dim);
  return text.empty() ? "a scalar" : text;
}

SafetensorsFile read_safetensors(std::span<const std::byte> file) {
  const auto text = read_header(file);
  const auto data = file.subspan(kLengthBytes + text.size());
  const JsonDocument document(text, "[safetensors] header", kMostHeaderBytes);
  // An entry's errors begin with the tensor's name alone.
  const JsonObject header = document.root("[safetensors] tensor");
  std::vector<Placed> entries = read_entries(header);
  std::ranges::sort(entries, {}, [](const Placed& entry) { return entry.range.begin; });

  SafetensorsFile result;
  result.header = file.first(kLengthBytes + text.size());
  std::uint64_t next = 0;
  for (Placed& entry : entries) {
    const std::string where = "tensor " + in_quotes(entry.tensor.name) + ": ";
    const std::string range = std::to_string(entry.range.begin) + " to " + std::to_string(entry.range.end);
    if (entry.range.end > data.size())
      fail(where + "expected bytes inside the " + std::to_string(data.size()) + " of data, file says " + range);
    if (entry.range.begin != next)
      fail(where + "expected bytes from " + std::to_string(next) + " on, with no overlap and no hole, file says " + range);
    next = entry.range.end;
    entry.tensor.bytes = data.subspan(entry.range.begin, entry.range.end - entry.range.begin);
    result.tensors.push_back(std::move(entry.tensor));
  }
  if (next != data.size())
    fail("data: expected " + std::to_string(next) + " bytes, all of some tensor, the file has " + std::to_string(data.size()));
  return result;
}

}  // namespace couplet::formats
