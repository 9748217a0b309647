#include "formats/quantized_file.h"

#include <array>
#include <cstring>

#include "couplet/error.h"
#include "formats/printable.h"
#include "formats/quantize.h"

namespace couplet::formats {
namespace {

constexpr std::size_t kStretch = 256;  // values at a time: a multiple of every block's

bool is_float(TensorType type) { return info(type).block_values == 1; }

}  // namespace

void QuantizedFile::Rows::make_row(std::uint64_t row, std::byte* out) const {
  std::vector<std::byte> made(source_.made != nullptr ? source_.row_bytes() : 0);
  const std::byte* from = source_.row(row, made.data());
  std::array<float, kStretch> values;
  for (std::uint64_t left = source_.row_length(); left > 0;) {
    const std::size_t count = std::min<std::uint64_t>(left, kStretch);
    dequantize(source_.type, from, count, values.data());
    const std::size_t out_bytes = count / info(type_).block_values * info(type_).block_bytes;
    if (!quantize(type_, values.data(), count, out)) {
      is_spoiled_.store(true, std::memory_order_relaxed);
      std::memset(out, 0xff, out_bytes);
    }
    from += count * info(source_.type).block_bytes;
    out += out_bytes;
    left -= count;
  }
}

QuantizedFile::QuantizedFile(std::unique_ptr<CheckpointFile> source, const Mix& mix) : source_(std::move(source)), mix_(&mix) {
  const MixRules rules(*source_, mix);
  for (Tensor tensor : source_->tensors()) {
    const TensorType type = rules.type_of(tensor);
    if (is_float(tensor.type) && type != tensor.type && tensor.num_dims > 1) {
      tensor.made = &rows_.emplace_back(tensor, type);
      tensor.type = type;
      tensor.bytes = {};
    }
    tensors_.push_back(tensor);
  }
  if (rows_.empty() && lacks_weights().empty())
    throw Error(ErrorKind::usage, "[quantize] type: expected one that changes float matrices, " + in_quotes(mix.name) +
                                      " changes none of this model's");
}

const Tensor* QuantizedFile::find(std::string_view name) const {
  const Tensor* found = source_->find(name);
  return found == nullptr ? nullptr : &tensors_[static_cast<std::size_t>(found - source_->tensors().data())];
}

void QuantizedFile::refuse_spoiled_rows() const {
  for (const Tensor& tensor : tensors_) {
    const auto* rows = dynamic_cast<const Rows*>(tensor.made);
    if (rows != nullptr && rows->is_spoiled())
      throw Error(ErrorKind::format, "[quantize] tensor " + in_quotes(tensor.name) + ": expected numbers that " +
                                         info(tensor.type).name + " can hold, got one too large, infinite or NaN");
  }
}

}  // namespace couplet::formats
