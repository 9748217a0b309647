#pragma once
// The header of a GGUF v3 file: metadata and the table of tensors, whose data is laid out behind it. Writing the data is
// the caller's, in pieces and in any order (base/new_file.h), so that no model has to fit into memory.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint_file.h"
#include "formats/gguf_metadata.h"
#include "formats/gguf_values.h"

namespace couplet::formats {

class GgufWriter {
 public:
  static constexpr std::uint64_t kAlignment = 32;

  // A number, bool or string, or a vector of them. A key that is there already gets this value.
  template <class T>
    requires std::is_arithmetic_v<T>
  void set(std::string_view key, T value) {
    put(key, gguf_type_of<T>(), gguf_bytes(value).bytes);
  }
  void set(std::string_view key, std::string_view value) { put(key, GgufValueType::string, gguf_bytes(value).bytes); }
  void set(std::string_view key, const char* value) { set(key, std::string_view(value)); }
  template <class T>
  void set(std::string_view key, const std::vector<T>& values) {
    put(key, GgufValueType::array, gguf_bytes(values).bytes);
  }
  // As another file has it.
  void set(const GgufMetadata::Entry& entry);

  // The next tensor, with the name and shape of this one.
  void add_tensor(const Tensor& like, TensorType type);

  std::vector<std::byte> header() const;  // up to the first tensor's data
  std::uint64_t data_offset(std::size_t tensor) const { return header_bytes() + tensors_[tensor].offset; }
  std::uint64_t file_bytes() const { return header_bytes() + data_bytes_; }

 private:
  struct Entry {
    std::string key;
    GgufValueType type;
    std::vector<std::byte> value;
  };
  struct TensorEntry {
    std::string name;
    std::vector<std::uint64_t> dims;
    TensorType type;
    std::uint64_t offset;  // in the data
  };
  void put(std::string_view key, GgufValueType type, std::vector<std::byte> value);
  std::uint64_t header_bytes() const;

  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;  // of entries_, by key
  std::vector<TensorEntry> tensors_;
  std::uint64_t data_bytes_ = 0;
};

}  // namespace couplet::formats
