#include "formats/gguf_part.h"

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>

#include "formats/gguf_reader.h"
#include "formats/name_index.h"
#include "formats/printable.h"

namespace couplet::formats {
namespace {

constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kSmallestAlignment = 8;
constexpr std::uint64_t kLargestAlignment = 65'536;
constexpr std::size_t kMostTensorNameBytes = 255;  // GGUF says 64; files with longer ones exist
constexpr std::uint32_t kMostDims = 4;

// A tensor's entry in the table, before it's known where the data starts.
struct TensorEntry {
  Tensor tensor;
  std::uint64_t offset;  // from the start of the data
  std::uint64_t size_bytes;
};

std::string shape_of(const Tensor& tensor) {
  std::string shape;
  for (int i = 0; i < tensor.num_dims; ++i) {
    shape += (i ? " x " : "") + std::to_string(tensor.dims[static_cast<std::size_t>(i)]);
  }
  return shape;
}

// Reads magic and version; the magic may be fine and the rest byte-swapped, as big-endian files are.
std::uint32_t read_version(GgufReader& reader) {
  reader.enter("header");
  const auto magic_bytes = reader.take(4);
  const std::string_view magic(reinterpret_cast<const char*>(magic_bytes.data()), magic_bytes.size());
  if (magic != "GGUF" && magic != "FUGG") {
    reader.fail(ErrorKind::format, "expected the magic \"GGUF\", file says " + in_quotes(magic));
  }
  const auto version = reader.read<std::uint32_t>();
  if (magic == "FUGG" || (version != 0 && (version & 0xffff) == 0)) {
    reader.fail(ErrorKind::unsupported, "expected a little-endian file, this one is big-endian");
  }
  if (version != 2 && version != 3) {
    reader.fail(ErrorKind::unsupported, "expected version 2 or 3, file says " + std::to_string(version));
  }
  return version;
}

std::uint64_t read_alignment(const GgufMetadata& metadata, const GgufReader& reader) {
  const std::uint64_t alignment = metadata.get_uint("general.alignment").value_or(kDefaultAlignment);
  if (!std::has_single_bit(alignment) || alignment < kSmallestAlignment || alignment > kLargestAlignment) {
    reader.fail(ErrorKind::format,
                "expected general.alignment to be a power of two from 8 to 65536, file says " +
                    std::to_string(alignment));
  }
  return alignment;
}

void read_name(GgufReader& reader, Tensor& tensor) {
  tensor.name = reader.read_string();
  if (tensor.name.empty() || tensor.name.size() > kMostTensorNameBytes) {
    reader.fail(ErrorKind::format, "expected a name of 1 to " + std::to_string(kMostTensorNameBytes) +
                                       " bytes, file says " + std::to_string(tensor.name.size()));
  }
  reader.enter("tensor " + in_quotes(tensor.name));
  if (!is_printable(tensor.name)) {
    reader.fail(ErrorKind::format, "expected a name in UTF-8 without control characters");
  }
}

void read_dims(GgufReader& reader, Tensor& tensor) {
  const auto num_dims = reader.read<std::uint32_t>();
  if (num_dims < 1 || num_dims > kMostDims) {
    reader.fail(ErrorKind::format, "expected 1 to 4 dimensions, file says " + std::to_string(num_dims));
  }
  tensor.num_dims = static_cast<int>(num_dims);
  tensor.dims.fill(1);
  for (std::uint32_t i = 0; i < num_dims; ++i) tensor.dims[i] = reader.read<std::uint64_t>();
  if (std::ranges::find(tensor.dims, std::uint64_t{0}) != tensor.dims.end()) {
    reader.fail(ErrorKind::format, "expected dimensions of at least 1, file says " + shape_of(tensor));
  }
}

void read_tensor_type(GgufReader& reader, Tensor& tensor) {
  const auto id = reader.read<std::uint32_t>();
  const auto type = from_gguf_id(id);
  if (!type) {
    const std::string_view name = gguf_type_name(id);
    reader.fail(name.empty() ? ErrorKind::format : ErrorKind::unsupported,
                "expected a type that this engine reads, file says " +
                    (name.empty() ? "number " + std::to_string(id) : std::string(name)));
  }
  tensor.type = *type;
  const TensorTypeInfo& type_info = info(*type);
  if (tensor.row_length() % type_info.block_values != 0) {
    reader.fail(ErrorKind::format, std::string("expected rows of a multiple of ") +
                                       std::to_string(type_info.block_values) + " values for " +
                                       type_info.name + ", file says " + shape_of(tensor));
  }
}

// Bytes that type and dims need; an error if that is more than the whole file has left (or overflows).
std::uint64_t size_of(const Tensor& tensor, const GgufReader& reader) {
  const TensorTypeInfo& type_info = info(tensor.type);
  std::uint64_t size = tensor.row_length() / type_info.block_values;
  bool overflow = __builtin_mul_overflow(size, std::uint64_t{type_info.block_bytes}, &size);
  for (std::size_t i = 1; i < tensor.dims.size(); ++i) {
    overflow |= __builtin_mul_overflow(size, tensor.dims[i], &size);
  }
  if (overflow || size > reader.left()) {
    reader.fail(ErrorKind::format, "expected at most " + std::to_string(reader.left()) +
                                       " bytes of data, file says " + shape_of(tensor) + " of " +
                                       type_info.name);
  }
  return size;
}

TensorEntry read_tensor(GgufReader& reader, std::uint64_t index, std::uint64_t alignment) {
  TensorEntry entry{};
  reader.enter("tensor number " + std::to_string(index + 1));
  read_name(reader, entry.tensor);
  read_dims(reader, entry.tensor);
  read_tensor_type(reader, entry.tensor);
  entry.offset = reader.read<std::uint64_t>();
  if (entry.offset % alignment != 0) {
    reader.fail(ErrorKind::format, "expected an offset that is a multiple of " + std::to_string(alignment) +
                                       ", file says " + std::to_string(entry.offset));
  }
  entry.size_bytes = size_of(entry.tensor, reader);
  return entry;
}

std::vector<TensorEntry> read_tensor_table(GgufReader& reader, std::uint64_t num_tensors,
                                           std::uint64_t alignment) {
  constexpr std::uint64_t kSmallestEntryBytes =
      8 + 1 + 4 + 8 + 4 + 8;  // a name of one character, one dimension
  reader.enter("header");
  if (num_tensors > reader.left() / kSmallestEntryBytes) {
    reader.fail(ErrorKind::format, "expected at most " + std::to_string(reader.left() / kSmallestEntryBytes) +
                                       " tensors in the bytes left, file says " +
                                       std::to_string(num_tensors));
  }
  std::vector<TensorEntry> table;
  for (std::uint64_t i = 0; i < num_tensors; ++i) table.push_back(read_tensor(reader, i, alignment));
  const NameIndex index(table, [](const TensorEntry& entry) { return entry.tensor.name; });
  if (const auto twice = index.duplicate()) {
    reader.enter("tensor " + in_quotes(*twice));
    reader.fail(ErrorKind::format, "expected one of this name, file has several");
  }
  return table;
}

// Points every tensor at its bytes. No byte belongs to two tensors, so all of them together need no more
// memory than the file has bytes, whatever the table says.
void place_tensors(GgufReader& reader, std::vector<TensorEntry>& table, std::span<const std::byte> data) {
  std::vector<TensorEntry*> by_offset;
  for (TensorEntry& entry : table) by_offset.push_back(&entry);
  std::ranges::sort(by_offset, {}, &TensorEntry::offset);
  std::uint64_t free_from = 0;
  for (TensorEntry* entry : by_offset) {
    reader.enter("tensor " + in_quotes(entry->tensor.name));
    if (entry->offset > data.size() || entry->size_bytes > data.size() - entry->offset) {
      reader.fail(ErrorKind::format, "expected data inside the " + std::to_string(data.size()) +
                                         " bytes of tensor data, file says " +
                                         std::to_string(entry->size_bytes) + " bytes at " +
                                         std::to_string(entry->offset));
    }
    if (entry->offset < free_from) {
      reader.fail(ErrorKind::format, "expected bytes of its own from " + std::to_string(free_from) +
                                         " on, file says offset " + std::to_string(entry->offset));
    }
    free_from = entry->offset + entry->size_bytes;
    entry->tensor.bytes = data.subspan(entry->offset, entry->size_bytes);
  }
}

}  // namespace

GgufPart read_gguf_part(std::span<const std::byte> file) {
  GgufReader reader(file);
  GgufPart part{};
  part.version = read_version(reader);
  const auto num_tensors = reader.read<std::uint64_t>();
  const auto num_keys = reader.read<std::uint64_t>();
  if (num_keys == 0) reader.fail(ErrorKind::format, "expected at least one key, file says 0");
  part.metadata = GgufMetadata(reader, num_keys);
  reader.enter("header");
  const std::uint64_t alignment = read_alignment(part.metadata, reader);
  auto table = read_tensor_table(reader, num_tensors, alignment);

  const std::uint64_t data_start = (reader.position() + alignment - 1) / alignment * alignment;
  if (data_start < file.size()) part.data = file.subspan(data_start);
  place_tensors(reader, table, part.data);
  for (const TensorEntry& entry : table) part.tensors.push_back(entry.tensor);
  return part;
}

}  // namespace couplet::formats
