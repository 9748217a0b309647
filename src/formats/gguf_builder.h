#pragma once
// Writes small GGUF files in memory, for tests only: honest ones in a few lines, and ones that lie on purpose
// (the members that are open to all say what the header claims, and the raw_ functions write what no honest
// writer would).

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "formats/gguf_values.h"
#include "formats/quant_types.h"

namespace couplet::formats {

class GgufBuilder {
 public:
  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;               // that the data follows; the key has to be added besides
  std::optional<std::uint64_t> claimed_keys;  // instead of the true count
  std::optional<std::uint64_t> claimed_tensors;

  // A number, bool or string; a vector of them.
  template <class T>
    requires std::is_arithmetic_v<T>
  GgufBuilder& add(std::string_view key, T value) {
    return raw_key(key, static_cast<std::uint32_t>(gguf_type_of<T>()), gguf_bytes(value).bytes);
  }
  GgufBuilder& add(std::string_view key, std::string_view value) {
    return raw_key(key, kString, gguf_bytes(value).bytes);
  }
  GgufBuilder& add(std::string_view key, const char* value) { return add(key, std::string_view(value)); }
  template <class T>
  GgufBuilder& add(std::string_view key, const std::vector<T>& values) {
    return raw_key(key, kArray, gguf_bytes(values).bytes);
  }

  // A tensor; `dims` start with the row length. Without data its bytes are 0.
  GgufBuilder& add_tensor(std::string_view name, TensorType type, const std::vector<std::uint64_t>& dims,
                          std::vector<std::byte> data = {}) {
    std::uint64_t size = info(type).block_bytes;
    for (const std::uint64_t dim : dims) size *= dim;
    data.resize(size / info(type).block_values);
    raw_tensor(name, dims, info(type).gguf_id, data_.size());
    data_.insert(data_.end(), data.begin(), data.end());
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  GgufBuilder& add_tensor(std::string_view name, const std::vector<std::uint64_t>& dims,
                          const std::vector<float>& values) {
    std::vector<std::byte> data(values.size() * sizeof(float));
    if (!values.empty()) std::memcpy(data.data(), values.data(), data.size());
    return add_tensor(name, TensorType::f32, dims, data);
  }

  // A key with a type number and the bytes of its value; an entry of the tensor table, without data.
  GgufBuilder& raw_key(std::string_view key, std::uint32_t type, const std::vector<std::byte>& value) {
    keys_.put_string(key).put(type).put_bytes(value);
    ++num_keys_;
    return *this;
  }
  GgufBuilder& raw_tensor(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type,
                          std::uint64_t offset) {
    tensors_.put_string(name).put(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) tensors_.put(dim);
    tensors_.put(type).put(offset);
    ++num_tensors_;
    return *this;
  }
  GgufBuilder& raw_data(std::size_t size) {
    data_.resize(data_.size() + size);
    return *this;
  }

  std::vector<std::byte> build() const {
    ByteWriter file;
    file.put_text(magic).put(version);
    file.put(claimed_tensors.value_or(num_tensors_)).put(claimed_keys.value_or(num_keys_));
    file.put_bytes(keys_.bytes).put_bytes(tensors_.bytes);
    file.bytes.resize((file.bytes.size() + alignment - 1) / alignment * alignment);
    return file.put_bytes(data_).bytes;
  }
  void write(const std::filesystem::path& path) const {
    const auto bytes = build();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

  static constexpr std::uint32_t kString = 8;
  static constexpr std::uint32_t kArray = 9;

 private:
  ByteWriter keys_;
  ByteWriter tensors_;
  std::vector<std::byte> data_;
  std::uint64_t num_keys_ = 0;
  std::uint64_t num_tensors_ = 0;
};

}  // namespace couplet::formats
