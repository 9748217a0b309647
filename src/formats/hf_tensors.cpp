#include "formats/hf_tensors.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "couplet/error.h"
#include "formats/printable.h"

namespace couplet::formats {
namespace {

[[noreturn]] void fail(ErrorKind kind, std::string_view tensor, const std::string& problem) {
  throw Error(kind, "[safetensors] tensor " + in_quotes(tensor) + ": " + problem);
}

std::optional<TensorType> plain_type(const SafeTensor& tensor) {
  for (const TensorType type : {TensorType::f32, TensorType::f16, TensorType::bf16})
    if (tensor.dtype == info(type).name) return type;
  return std::nullopt;
}

TensorType type_of(const SafeTensor& tensor) {
  if (is_f8(tensor.dtype)) return TensorType::f32;
  const auto type = plain_type(tensor);
  if (!type)
    fail(ErrorKind::unsupported, tensor.name, "expected F32, F16, BF16, F8_E4M3 or F8_E5M2, file says " + std::string(tensor.dtype));
  return *type;
}

std::uint64_t blocks(std::uint64_t values, std::uint64_t of_block) { return values / of_block + (values % of_block != 0); }

}  // namespace

HfTensors::HfTensors(const HfConfig& config, std::span<const SafeTensor> found) : config_(&config) {
  find_scales(found);
  for (const SafeTensor& from : found) {
    const auto text_name = config.type->has_vision ? text_part(from.name) : from.name;
    if (!text_name || is_ballast(from.name) || scaled_weight(from.name) || (config.tied && *text_name == "lm_head.weight")) continue;
    if (config.num_layers_used && layer_of(*text_name).value_or(0) >= static_cast<std::int64_t>(*config.num_layers_used)) continue;
    const auto names = translate_name(*config.type, *text_name);
    if (names.empty())
      fail(ErrorKind::unsupported, from.name,
           "expected a name of model_type " + in_quotes(config.type->name) + ", none of its tensors has this one");
    for (const HfTensorName& name : names) {
      if (!name.columns) take(from, name);
      else from.name.ends_with("_blocks") ? take_blocks(from, name) : take_columns(from, name);
    }
  }
  for (const auto& [weights, scale] : scales_)
    if (!scale.is_used) fail(ErrorKind::format, scale.tensor->name, "expected weights that it scales, folder has none");
  scales_.clear();
  finish();
}

void HfTensors::find_scales(std::span<const SafeTensor> found) {
  for (const SafeTensor& tensor : found) {
    const auto weight = scaled_weight(tensor.name);
    if (weight && !scales_.emplace(*weight, Scale{&tensor, false}).second)
      fail(ErrorKind::format, tensor.name, "expected one scale of these weights, folder has several");
  }
}

const SafeTensor* HfTensors::find_scale(const SafeTensor& weights) {
  const auto found = scales_.find(weights.name);
  if (found == scales_.end()) return nullptr;
  found->second.is_used = true;
  return found->second.tensor;
}

void HfTensors::take(const SafeTensor& from, const HfTensorName& name) {
  Tensor tensor = to_tensor(from);
  if (config_->type->has_pairs && is_paired(name.name)) tensor.rope_order = RopeOrder::pairs;
  if (name.expert) {
    if (!experts_[name.name].emplace(*name.expert, tensor).second)
      fail(ErrorKind::format, from.name, "expected one of this expert, folder has several");
    return;
  }
  if (config_->type->norms_plus_one && name.name.ends_with("norm.weight")) {
    tensor.made = keep(std::make_unique<PlusOneRows>(tensor));
    tensor.type = TensorType::f32;
    tensor.bytes = {};
  }
  // A step reads rows of it as they lie there.
  if (tensor.made != nullptr && name.name == "token_embd.weight") {
    tensor.bytes = made_bytes(tensor);
    tensor.made = nullptr;
  }
  add(tensor, name.name);
}

// [experts, inputs, outputs] or, of a bias, [experts, outputs].
void HfTensors::take_columns(const SafeTensor& from, const HfTensorName& name) {
  const bool is_matrix = name.name.ends_with(".weight");
  const auto type = plain_type(from);
  if (!type || from.shape.size() != (is_matrix ? 3 : 2) || from.shape.back() % name.columns->step != 0)
    fail(ErrorKind::unsupported, from.name,
         "expected " + std::string(is_matrix ? "three" : "two") + " dimensions of F32, F16 or BF16, file says " +
             from.shape_text() + " of " + std::string(from.dtype));
  const std::uint64_t experts = from.shape[0], all = from.shape.back(), first = name.columns->first, step = name.columns->step;
  Tensor tensor{};
  tensor.type = *type;
  if (is_matrix) {
    const std::uint64_t inputs = from.shape[1];
    tensor.dims = {inputs, all / step, experts, 1};
    tensor.num_dims = 3;
    tensor.made = keep(std::make_unique<StridedRows>(from.bytes, tensor, all / step, Strides{first, inputs * all, step, all}));
  } else {
    tensor.dims = {all / step, experts, 1, 1};
    tensor.num_dims = 2;
    tensor.made = keep(std::make_unique<StridedRows>(from.bytes, tensor, 1, Strides{first, all, 0, step}));
  }
  add(tensor, name.name);
}

// [experts, outputs, blocks, 16], and a scale a block.
void HfTensors::take_blocks(const SafeTensor& from, const HfTensorName& name) {
  const SafeTensor* scales = find_scale(from);
  if (scales == nullptr) fail(ErrorKind::format, from.name, "expected its scales beside it, \"..._scales\", folder has none");
  const std::uint64_t first = name.columns->first, step = name.columns->step;
  const auto& shape = from.shape;
  if (from.dtype != "U8" || shape.size() != 4 || shape[3] != 16 || shape[1] % step != 0)
    fail(ErrorKind::format, from.name, "expected experts x outputs x blocks x 16 of U8, file says " + from.shape_text() + " of " +
                                           std::string(from.dtype));
  if (scales->dtype != "U8" || scales->shape != std::vector(shape.begin(), shape.end() - 1))
    fail(ErrorKind::format, scales->name, "expected U8, one a block, file says " + scales->shape_text() + " of " + std::string(scales->dtype));
  Tensor tensor{};
  tensor.type = TensorType::mxfp4;
  tensor.dims = {shape[2] * 32, shape[1] / step, shape[0], 1};
  tensor.num_dims = 3;
  tensor.made = keep(std::make_unique<Mxfp4Rows>(from.bytes, scales->bytes, tensor, shape[1] / step, Strides{first, shape[1], step, 0}));
  add(tensor, name.name);
}

Tensor HfTensors::to_tensor(const SafeTensor& from) {
  Tensor tensor{};
  tensor.type = type_of(from);
  tensor.dims.fill(1);
  tensor.num_dims = std::max(1, static_cast<int>(from.shape.size()));
  std::copy(from.shape.rbegin(), from.shape.rend(), tensor.dims.begin());
  if (is_f8(from.dtype)) return f8_tensor(from, tensor);
  tensor.bytes = from.bytes;
  return tensor;
}

Tensor HfTensors::f8_tensor(const SafeTensor& from, Tensor tensor) {
  if (from.shape.size() != 2) fail(ErrorKind::format, from.name, "expected a matrix of F8, file says " + from.shape_text());
  std::uint64_t ignored = 0;
  if (__builtin_mul_overflow(from.bytes.size(), sizeof(float), &ignored))
    fail(ErrorKind::resource, from.name, "expected a size inside 64 bits as F32");
  F8Scales scales;
  if (const SafeTensor* scale = find_scale(from)) {
    scales = read_scales(from, *scale);
  } else if (config_->quantization.is_f8) {
    fail(ErrorKind::format, from.name, "expected a scale beside it, \"..._scale_inv\" or \"..._scale\", folder has none");
  }
  tensor.made = keep(std::make_unique<F8Rows>(from, std::move(scales)));
  return tensor;
}

F8Scales HfTensors::read_scales(const SafeTensor& codes, const SafeTensor& scales) const {
  const auto type = plain_type(scales);
  if (!type) fail(ErrorKind::unsupported, scales.name, "expected F32, F16 or BF16, file says " + std::string(scales.dtype));
  const std::uint64_t rows = codes.shape[0], cols = codes.shape[1];
  const std::size_t count = scales.bytes.size() / info(*type).block_bytes;
  F8Scales result;
  const HfQuantization& quantization = config_->quantization;
  if (quantization.block_rows > 0) {
    result.block_rows = quantization.block_rows;
    result.block_cols = quantization.block_cols;
    result.blocks_in_row = blocks(cols, result.block_cols);
    const std::vector<std::uint64_t> expected = {blocks(rows, result.block_rows), result.blocks_in_row};
    if (scales.shape != expected)
      fail(ErrorKind::format, scales.name, "expected " + std::to_string(expected[0]) + " x " + std::to_string(expected[1]) +
                                               ", one a block of weight_block_size, file says " + scales.shape_text());
  } else {
    const bool for_all = count == 1, for_row = count == rows && !scales.shape.empty() && scales.shape[0] == rows;
    if (!for_all && !for_row)
      fail(ErrorKind::format, scales.name, "expected one value, or " + std::to_string(rows) + " x 1, file says " + scales.shape_text());
    result.block_rows = for_all ? rows : 1;
    result.block_cols = cols;
  }
  result.values.resize(count);
  dequantize(*type, scales.bytes.data(), count, result.values.data());
  return result;
}

void HfTensors::join_experts(const std::string& name, const ExpertParts& parts) {
  const std::uint64_t expected =
      config_->metadata.get_uint(std::string(config_->type->family) + ".expert_count").value_or(0);
  if (parts.size() != expected || parts.rbegin()->first != static_cast<int>(parts.size()) - 1)
    fail(ErrorKind::format, name, "expected the " + std::to_string(expected) + " experts of config.json, folder has " +
                                      std::to_string(parts.size()) + ", the last of them number " +
                                      std::to_string(parts.rbegin()->first));
  Tensor joined = parts.begin()->second;
  std::vector<Tensor> experts;
  for (const auto& [expert, part] : parts) {
    if (part.type != joined.type || part.dims != joined.dims)
      fail(ErrorKind::format, name, "expected experts of one type and shape, expert " + std::to_string(expert) + " differs");
    experts.push_back(part);
  }
  std::uint64_t size = 0;
  if (joined.dims[2] != 1) fail(ErrorKind::format, name, "expected matrices, file has more dimensions");
  if (__builtin_mul_overflow(joined.size_bytes(), parts.size(), &size))
    fail(ErrorKind::resource, name, "expected a size inside 64 bits");
  joined.dims[2] = parts.size();
  joined.num_dims = 3;
  joined.bytes = {};
  joined.made = keep(std::make_unique<ExpertRows>(std::move(experts)));
  add(joined, name);
}

void HfTensors::add_factors() {
  for (const HfConfig::Factors& factors : config_->factors) {
    const std::size_t size = factors.values.size() * sizeof(float);
    std::byte* bytes = bytes_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(size)).get();
    std::memcpy(bytes, factors.values.data(), size);
    add({.name = {}, .type = TensorType::f32, .dims = {factors.values.size(), 1, 1, 1}, .num_dims = 1, .bytes = {bytes, size}},
        factors.name);
  }
}

std::span<const std::byte> HfTensors::made_bytes(const Tensor& tensor) {
  std::byte* bytes = bytes_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(tensor.size_bytes())).get();
  for (std::uint64_t row = 0; row < tensor.num_rows(); ++row) tensor.made->make_row(row, bytes + row * tensor.row_bytes());
  return {bytes, tensor.size_bytes()};
}

void HfTensors::add(Tensor tensor, const std::string& name) {
  tensor.name = names_.emplace_back(name);
  tensors_.push_back(tensor);
}

void HfTensors::finish() {
  for (const auto& [name, parts] : experts_) join_experts(name, parts);
  experts_.clear();
  add_factors();
  index_ = NameIndex(tensors_, [](const Tensor& tensor) { return tensor.name; });
  if (const auto twice = index_.duplicate())
    fail(ErrorKind::format, *twice, "expected it once, folder has it under several names");
  if (!config_->tied && find("output.weight") == nullptr)
    fail(ErrorKind::format, "lm_head.weight", "expected it, config.json doesn't tie it to the embeddings, folder has none");
  config_ = nullptr;
}

const Tensor* HfTensors::find(std::string_view name) const {
  const auto position = index_.find(name);
  return position ? &tensors_[*position] : nullptr;
}

}  // namespace couplet::formats
