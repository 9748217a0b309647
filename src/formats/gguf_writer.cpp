#include "formats/gguf_writer.h"

#include <utility>

namespace couplet::formats {
namespace {

constexpr std::uint32_t kVersion = 3;
constexpr std::string_view kMagic = "GGUF";

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + GgufWriter::kAlignment - 1) / GgufWriter::kAlignment * GgufWriter::kAlignment;
}

}  // namespace

void GgufWriter::put(std::string_view key, GgufValueType type, std::vector<std::byte> value) {
  const auto [place, is_new] = index_.emplace(key, entries_.size());
  if (is_new) entries_.emplace_back();
  entries_[place->second] = {std::string(key), type, std::move(value)};
}

void GgufWriter::set(const GgufMetadata::Entry& entry) {
  ByteWriter value;
  if (entry.is_array) value.put(entry.type).put(entry.count);
  value.append(entry.bytes.data(), entry.bytes.size());
  put(entry.key, entry.is_array ? GgufValueType::array : entry.type, std::move(value.bytes));
}

void GgufWriter::add_tensor(const Tensor& like, TensorType type) {
  tensors_.push_back({std::string(like.name), {like.dims.begin(), like.dims.begin() + like.num_dims}, type, data_bytes_});
  const std::uint64_t blocks = like.row_length() / info(type).block_values * like.num_rows();
  data_bytes_ = aligned(data_bytes_ + blocks * info(type).block_bytes);
}

std::uint64_t GgufWriter::header_bytes() const {
  constexpr std::uint64_t kString = sizeof(std::uint64_t);  // before its characters
  std::uint64_t bytes = kMagic.size() + sizeof kVersion + 2 * sizeof(std::uint64_t);
  for (const Entry& entry : entries_) bytes += kString + entry.key.size() + sizeof(GgufValueType) + entry.value.size();
  for (const TensorEntry& tensor : tensors_)
    bytes += kString + tensor.name.size() + 2 * sizeof(std::uint32_t) + (tensor.dims.size() + 1) * sizeof(std::uint64_t);
  return aligned(bytes);
}

std::vector<std::byte> GgufWriter::header() const {
  ByteWriter out;
  out.put_text(kMagic).put(kVersion).put(std::uint64_t{tensors_.size()}).put(std::uint64_t{entries_.size()});
  for (const Entry& entry : entries_) out.put_string(entry.key).put(entry.type).put_bytes(entry.value);
  for (const TensorEntry& tensor : tensors_) {
    out.put_string(tensor.name).put(static_cast<std::uint32_t>(tensor.dims.size()));
    for (const std::uint64_t dim : tensor.dims) out.put(dim);
    out.put(info(tensor.type).gguf_id).put(tensor.offset);
  }
  out.bytes.resize(header_bytes());
  return std::move(out.bytes);
}

}  // namespace couplet::formats
