#include "couplet/convert.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <system_error>

#include "base/cpu_features.h"
#include "base/float_environment.h"
#include "base/new_file.h"
#include "base/thread_pool.h"
#include "couplet/error.h"
#include "engine/convert_metadata.h"
#include "engine/open_checkpoint.h"
#include "formats/gguf.h"
#include "formats/gguf_writer.h"
#include "formats/printable.h"
#include "formats/quantize.h"
#include "formats/quantize_mix.h"
#include "model/config.h"
#include "model/packing.h"

namespace couplet {
namespace engine {
namespace {

namespace fs = std::filesystem;
using formats::Tensor;
using formats::TensorType;

constexpr std::uint64_t kItemBytes = std::uint64_t{1} << 20;    // of values as floats, for a thread at a time
constexpr std::uint64_t kBatchBytes = std::uint64_t{64} << 20;  // between two looks at whether to go on

[[noreturn]] void refuse(ErrorKind kind, const fs::path& path, const std::string& problem) {
  throw Error(kind, "[convert] " + formats::in_quotes(path.native()) + ": " + problem);
}

// Before anything is read: an hour of work must not end in this.
void check_output(const fs::path& input, const fs::path& output, bool replace) {
  std::error_code ignored;
  if (!fs::exists(output, ignored)) return;
  if (fs::equivalent(input, output, ignored)) refuse(ErrorKind::usage, output, "expected another file than the input");
  if (!fs::is_regular_file(output, ignored)) refuse(ErrorKind::usage, output, "expected a file to write, got something else");
  if (!replace) refuse(ErrorKind::usage, output, "expected no file of this name, there is one");
}

// GGUF's llama files interleave the two halves of query and key heads, folders don't.
class PairedRows {
 public:
  explicit PairedRows(const formats::CheckpointFile& file) : family_(file.get_string("general.architecture").value_or("")) {
    if (std::ranges::none_of(file.tensors(), [this](const Tensor& tensor) { return changes(tensor); })) return;
    const model::ModelConfig config = model::read_config(file);
    const model::PackingPlan plan(file, config);
    in_head_.resize(static_cast<std::size_t>(config.head_dim));
    for (int row = 0; row < config.head_dim; ++row)
      in_head_[static_cast<std::size_t>(plan.file_row(row, formats::RopeOrder::pairs))] = static_cast<std::uint64_t>(row);
  }

  // The input's row, or value of a vector, that stands at `row` of the output.
  std::uint64_t source(const Tensor& tensor, std::uint64_t row) const {
    return changes(tensor) ? row - row % in_head_.size() + in_head_[row % in_head_.size()] : row;
  }

 private:
  bool changes(const Tensor& tensor) const {
    return tensor.rope_order == formats::RopeOrder::halves && formats::holds_pairs(family_, tensor.name);
  }

  std::string family_;
  std::vector<std::uint64_t> in_head_;  // empty: nothing changes places
};

class Conversion {
 public:
  Conversion(const formats::CheckpointFile& file, const fs::path& output, const ConvertOptions& options)
      : file_(file), options_(options), rules_(file, formats::find_mix(options.type)), rows_(file),
        threads_(options.num_threads > 0 ? std::min(options.num_threads, usable_cpus()) : usable_cpus()),
        out_(output, "convert") {}

  ConvertSummary run() {
    write_metadata(file_, rules_.mix(), writer_);
    for (const Tensor& tensor : file_.tensors()) writer_.add_tensor(tensor, type_of(tensor));
    out_.reserve(writer_.file_bytes());
    const std::vector<std::byte> header = writer_.header();
    check(out_.write(header.data(), header.size(), 0));
    for (std::size_t i = 0; i < file_.tensors().size(); ++i)
      if (!write_tensor(i)) return {};
    out_.finish();
    return {true, file_.file_bytes(), writer_.file_bytes(), {}};
  }

 private:
  void check(int code) const {
    if (code != 0) out_.fail(code);
  }

  TensorType type_of(const Tensor& tensor) const {
    const TensorType type = rules_.type_of(tensor);
    const bool is_quantized = formats::info(tensor.type).block_values > 1;
    if (is_quantized && type != tensor.type && !options_.allow_requantize)
      throw Error(ErrorKind::usage, "[convert] tensor " + formats::in_quotes(tensor.name) + ": expected floats, input has " +
                                        formats::info(tensor.type).name +
                                        ": quantizing again loses more than once from the floats (--allow-requantize does it)");
    return type;
  }

  // False: stopped.
  bool write_tensor(std::size_t index) {
    const Tensor& tensor = file_.tensors()[index];
    const TensorType type = type_of(tensor);
    const std::uint64_t values_bytes = tensor.row_length() * sizeof(float);
    const std::uint64_t rows_an_item = std::max<std::uint64_t>(1, kItemBytes / values_bytes);
    const std::uint64_t rows_a_batch = std::max(rows_an_item, kBatchBytes / values_bytes);
    for (std::uint64_t first = 0; first < tensor.num_rows(); first += rows_a_batch) {
      const std::uint64_t last = std::min(first + rows_a_batch, tensor.num_rows());
      const int num_items = static_cast<int>((last - first + rows_an_item - 1) / rows_an_item);
      std::atomic<int> problem{0};
      std::atomic<bool> is_unfit{false};
      threads_.parallel_for(num_items, [&](int item, int) {
        const StandardFloats floats;
        const std::uint64_t begin = first + static_cast<std::uint64_t>(item) * rows_an_item;
        const std::uint64_t end = std::min(begin + rows_an_item, last);
        std::vector<std::byte> out((end - begin) * row_bytes(tensor, type));
        if (!make_rows(tensor, type, begin, end, out.data())) is_unfit = true;
        if (const int code = out_.write(out.data(), out.size(), writer_.data_offset(index) + begin * row_bytes(tensor, type)))
          problem = code;
      });
      check(problem);
      if (is_unfit)
        throw Error(ErrorKind::format, "[convert] tensor " + formats::in_quotes(tensor.name) + ": expected numbers that " +
                                           formats::info(type).name + " can hold, got one too large, infinite or NaN");
      file_.drop(tensor.bytes);
      done_ += (last - first) * row_bytes(tensor, type);
      if (options_.progress && !options_.progress(done_, writer_.file_bytes())) return false;
    }
    return true;
  }

  static std::uint64_t row_bytes(const Tensor& tensor, TensorType type) {
    return tensor.row_length() / formats::info(type).block_values * formats::info(type).block_bytes;
  }

  bool make_rows(const Tensor& tensor, TensorType type, std::uint64_t begin, std::uint64_t end, std::byte* out) const {
    std::vector<std::byte> made(tensor.row_bytes());
    std::vector<float> values(tensor.row_length()), in_order(tensor.row_length());
    for (std::uint64_t row = begin; row < end; ++row, out += row_bytes(tensor, type)) {
      const std::byte* from = tensor.row(tensor.num_dims > 1 ? rows_.source(tensor, row) : row, made.data());
      if (type == tensor.type && tensor.num_dims > 1) {
        std::copy_n(from, tensor.row_bytes(), out);
        continue;
      }
      formats::dequantize(tensor.type, from, values.size(), values.data());
      for (std::size_t i = 0; i < values.size(); ++i) in_order[i] = values[tensor.num_dims > 1 ? i : rows_.source(tensor, i)];
      if (!formats::quantize(type, in_order.data(), in_order.size(), out)) return false;
    }
    return true;
  }

  const formats::CheckpointFile& file_;
  const ConvertOptions& options_;
  formats::MixRules rules_;
  PairedRows rows_;
  ThreadPool threads_;
  NewFile out_;
  formats::GgufWriter writer_;
  std::uint64_t done_ = 0;
};

}  // namespace
}  // namespace engine

std::vector<std::string_view> weight_types() {
  std::vector<std::string_view> names;
  for (const formats::Mix& mix : formats::all_mixes()) names.push_back(mix.name);
  return names;
}

ConvertSummary convert_checkpoint(const std::filesystem::path& input, const std::filesystem::path& output,
                                  const ConvertOptions& options) {
  const StandardFloats floats;
  formats::find_mix(options.type);
  engine::check_output(input, output, options.replace);
  const auto file = formats::CheckpointFile::open(input);
  if (const std::string lack = file->lacks_weights(); !lack.empty()) throw Error(ErrorKind::not_found, lack);
  for (const formats::FilePart& part : file->parts()) engine::check_output(part.stamp.path, output, options.replace);
  ConvertSummary summary = engine::Conversion(*file, output, options).run();
  if (summary.finished) summary.tensor_types = engine::summarize_tensors(*formats::CheckpointFile::open(output));
  return summary;
}

}  // namespace couplet
