#pragma once
// For tests: writes safetensors files, honest ones and, by a header of one's own, lies.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace couplet::formats {

class SafetensorsBuilder {
 public:
  // A tensor of `shape` whose bytes count up.
  SafetensorsBuilder& add(const std::string& name, const std::string& dtype, const std::vector<std::uint64_t>& shape,
                          std::size_t num_bytes) {
    std::string dims;
    for (const std::uint64_t dim : shape) dims += (dims.empty() ? "" : ",") + std::to_string(dim);
    entry(name, "{\"dtype\":\"" + dtype + "\",\"shape\":[" + dims + "],\"data_offsets\":[" + std::to_string(data_.size()) + "," +
                    std::to_string(data_.size() + num_bytes) + "]}");
    return data(num_bytes);
  }
  SafetensorsBuilder& add_bytes(const std::string& name, const std::string& dtype, const std::vector<std::uint64_t>& shape,
                                const std::string& bytes) {
    add(name, dtype, shape, bytes.size());
    data_.replace(data_.size() - bytes.size(), bytes.size(), bytes);
    return *this;
  }
  SafetensorsBuilder& add_floats(const std::string& name, const std::vector<std::uint64_t>& shape,
                                 const std::vector<float>& values) {
    add(name, "F32", shape, values.size() * sizeof(float));
    std::memcpy(data_.data() + data_.size() - values.size() * sizeof(float), values.data(), values.size() * sizeof(float));
    return *this;
  }
  // JSON of one's own after `name`, and bytes that no entry was made for.
  SafetensorsBuilder& entry(const std::string& name, const std::string& json) {
    header_ += (header_.empty() ? "{\"" : ",\"") + name + "\":" + json;
    return *this;
  }
  SafetensorsBuilder& data(std::size_t num_bytes) {
    for (std::size_t i = 0; i < num_bytes; ++i) data_.push_back(static_cast<char>(i % 64));
    return *this;
  }

  std::optional<std::string> raw_header;        // instead of the entries
  std::optional<std::uint64_t> claimed_length;  // of the header

  std::vector<std::byte> build() const {
    const std::string header = raw_header.value_or(header_.empty() ? "{}" : header_ + "}");
    const std::uint64_t length = claimed_length.value_or(header.size());
    std::vector<std::byte> bytes(sizeof length + header.size() + data_.size());
    std::memcpy(bytes.data(), &length, sizeof length);
    std::memcpy(bytes.data() + sizeof length, header.data(), header.size());
    std::memcpy(bytes.data() + sizeof length + header.size(), data_.data(), data_.size());
    return bytes;
  }
  void write(const std::filesystem::path& path) const {
    const std::vector<std::byte> bytes = build();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::string header_, data_;
};

}  // namespace couplet::formats
