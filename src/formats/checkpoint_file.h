#pragma once
// A checkpoint as bytes: metadata and named tensors over mapped memory. Every count, offset, size and type
// was checked before this object exists, so what it hands out is inside the file. Names are GGUF's
// ("blk.3.attn_q.weight", "llama.block_count"), whichever kind of file they came from.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/mapped_file.h"
#include "formats/quant_types.h"

namespace couplet::formats {

// How the rows of a query or key projection stand in the file. The engine wants the two halves of a head that
// rope turns against each other ("halves"); GGUF's llama files interleave them row by row ("pairs").
enum class RopeOrder : std::uint8_t { halves, pairs };

// Rows of a tensor that the file holds in another form than it is handed out in. Any thread may ask.
class RowSource {
 public:
  virtual ~RowSource() = default;
  // Writes row `row` of the tensor in the tensor's type.
  virtual void make_row(std::uint64_t row, std::byte* out) const = 0;
};

struct Tensor {
  std::string_view name;
  TensorType type;
  std::array<std::uint64_t, 4> dims;  // dims[0] is the length of a row; unused ones are 1
  int num_dims;
  std::span<const std::byte> bytes;  // exactly what type and dims need; none where rows are made
  RopeOrder rope_order = RopeOrder::halves;
  const RowSource* made = nullptr;  // makes the rows; it lives as long as the file

  std::uint64_t row_length() const { return dims[0]; }
  std::uint64_t num_rows() const { return dims[1] * dims[2] * dims[3]; }
  std::uint64_t row_bytes() const { return row_length() / info(type).block_values * info(type).block_bytes; }
  std::uint64_t size_bytes() const { return row_bytes() * num_rows(); }
  // Where row `row` lies: in the file, or in `buffer`, of row_bytes(), where it is made.
  const std::byte* row(std::uint64_t row, std::byte* buffer) const {
    if (made == nullptr) return bytes.data() + row * row_bytes();
    made->make_row(row, buffer);
    return buffer;
  }
};

// One file of a checkpoint; a split one has several.
struct FilePart {
  FileStamp stamp;
  std::span<const std::byte> bytes;
  std::span<const std::byte> headers;  // of it: all that stands before the tensor data
};

class CheckpointFile {
 public:
  // Opens a GGUF file v2 or v3 (of a split one, all parts beside it) or a Hugging Face folder, which may hold a tokenizer
  // alone. Throws couplet::Error, "[gguf] ...", "[safetensors] ...", "[folder] ..." or "[file] ...".
  static std::unique_ptr<CheckpointFile> open(const std::filesystem::path& path);
  // A GGUF file from memory that outlives the object (tests, fuzzers); a split file is refused.
  static std::unique_ptr<CheckpointFile> parse(std::span<const std::byte> bytes);
  virtual ~CheckpointFile() = default;

  // Metadata. nullopt: no such key. A key of another kind than asked throws Error naming the key and both
  // kinds. Integers of every width convert where they fit; a float key takes f32 and f64.
  virtual std::optional<std::uint64_t> get_uint(std::string_view key) const = 0;
  virtual std::optional<double> get_float(std::string_view key) const = 0;
  virtual std::optional<bool> get_bool(std::string_view key) const = 0;
  virtual std::optional<std::string_view> get_string(std::string_view key) const = 0;
  virtual std::optional<std::vector<std::string_view>> get_strings(std::string_view key) const = 0;
  virtual std::optional<std::vector<std::int64_t>> get_ints(std::string_view key) const = 0;  // also of bools
  virtual std::optional<std::vector<float>> get_floats(std::string_view key) const = 0;
  virtual std::vector<std::string_view> keys() const = 0;

  virtual std::span<const Tensor> tensors() const = 0;
  virtual const Tensor* find(std::string_view name) const = 0;  // null: not there

  // Where there is a tokenizer alone: why there is nothing to run, and what to do, "[folder] ...". Else empty.
  virtual std::string lacks_weights() const { return {}; }

  // The mix that float matrices are turned to as they are read ("q4_k_m"); empty: all is as the file has it.
  virtual std::string_view quantized_as() const { return {}; }
  // Throws, naming the tensor, if a row that was made so far was of numbers that its type can't hold.
  virtual void refuse_spoiled_rows() const {}

  virtual std::string_view format() const = 0;  // "GGUF v3", "safetensors", "tokenizer files"
  virtual std::uint64_t file_bytes() const = 0;
  virtual std::span<const FilePart> parts() const = 0;  // none where the caller owns the bytes
  // Asks the system to read tensor bytes ahead / to drop the resident pages of those that were copied.
  virtual void read_ahead(std::span<const std::byte> bytes) const = 0;
  virtual void drop(std::span<const std::byte> bytes) const = 0;
};

}  // namespace couplet::formats
