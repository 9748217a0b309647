#include "model/ops.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>

#include "base/check.h"

// Norms, products and elementwise steps; attention is in ops_attend.cpp.

namespace couplet::model {
namespace {

using kernels::padded16;

// A row's elementwise work is a microsecond: fewer rows than this aren't worth waking a thread for.
constexpr int kRowsAnItem = 8;
// Products are claimed in pieces of about this many packed bytes (decode) ...
constexpr std::size_t kBytesAnItem = 24 * 1024;
// ... and of two panels, the width of the many-row kernels' tiles.
constexpr int kPanelsAtOnce = 2;

Rows take_rows(Carver& carver, int max_rows, int cols) {
  Rows rows;
  rows.cols = cols;
  rows.stride = padded16(cols);
  rows.data = carver.take<float>(static_cast<std::size_t>(max_rows) * static_cast<std::size_t>(rows.stride));
  return rows;
}

Activations take_activations(Carver& carver, const ModelConfig& config, int max_rows) {
  Activations a;
  a.x = take_rows(carver, max_rows, config.hidden_size);
  a.y = take_rows(carver, max_rows, config.hidden_size);
  a.q = take_rows(carver, max_rows, config.q_size());
  a.k = take_rows(carver, max_rows, config.kv_size());
  a.v = take_rows(carver, max_rows, config.kv_size());
  a.attended = take_rows(carver, max_rows, config.q_size());
  a.gate = take_rows(carver, max_rows, config.intermediate_size);
  a.up = take_rows(carver, max_rows, config.intermediate_size);
  const int widest = std::max({config.hidden_size, config.q_size(), config.intermediate_size});
  const std::size_t codes = static_cast<std::size_t>(max_rows) * static_cast<std::size_t>((widest + 63) / 64 * 64);
  a.quantized.hi = carver.take<std::int8_t>(codes);
  a.quantized.lo = carver.take<std::int8_t>(codes);
  a.quantized.scale = carver.take<float>(codes / 32);
  a.quantized.scaled_sum = carver.take<float>(codes / 32);
  a.quantized.sum_hi = carver.take<std::int16_t>(codes / 16);
  a.quantized.sum_lo = carver.take<std::int16_t>(codes / 16);
  return a;
}

// Rows [first, first + num) of quantized activations, with one plane or both.
kernels::QuantizedRows part_of(const kernels::QuantizedRows& all, int first, int num, int num_planes) {
  const auto codes = static_cast<std::size_t>(first) * static_cast<std::size_t>(all.code_stride);
  const auto blocks = static_cast<std::size_t>(first) * static_cast<std::size_t>(all.cols / 32);
  kernels::QuantizedRows part = all;
  part.num_rows = num;
  part.hi += codes;
  part.scale += blocks;
  part.scaled_sum += blocks;
  part.sum_hi += 2 * blocks;
  part.lo = num_planes == 2 ? all.lo + codes : nullptr;
  part.sum_lo = num_planes == 2 ? all.sum_lo + 2 * blocks : nullptr;
  return part;
}

}  // namespace

Ops::Ops(const ModelConfig& config, const kernels::KernelTable& kernels, ThreadPool& threads, const cache::PagePool& pool,
         int max_rows, int max_sequences, int num_planes)
    : config_(&config),
      kernels_(&kernels),
      attention_(&kernels.attention[static_cast<std::size_t>(pool.shape().format)]),
      threads_(&threads),
      pool_(&pool),
      max_rows_(max_rows),
      num_planes_(num_planes) {
  const int group = config.num_heads / config.num_kv_heads;
  const auto num_threads = static_cast<std::size_t>(threads.num_threads());
  head_stride_ = padded16(config.head_dim);
  // About a hundred queries an item: enough to pay for turning a span's keys and values to floats once.
  block_rows_ = std::max(1, 96 / group);
  state_floats_ = static_cast<std::size_t>(block_rows_ * group) * static_cast<std::size_t>(head_stride_ + 2);
  state_floats_ = (state_floats_ + 15) / 16 * 16;
  partial_floats_ = static_cast<std::size_t>(group * (head_stride_ + 2) + 15) / 16 * 16;

  const auto carve = [&](Carver& carver) {
    activations_ = take_activations(carver, config, max_rows);
    poisoned_ = carver.take<std::uint8_t>(static_cast<std::size_t>(max_rows));
    block_states_ = carver.take<float>(2 * state_floats_ * num_threads);
  };
  Carver measure;
  carve(measure);
  memory_ = MappedMemory(measure.used(), "activations");
  Carver carver(memory_.data());
  carve(carver);

  const int widest = std::max({config.hidden_size, config.q_size(), config.intermediate_size});
  scratch_bytes_ = (kernels.scratch_bytes(widest, config.head_dim) + 63) / 64 * 64;
  scratch_ = MappedMemory(scratch_bytes_ * num_threads, "kernel scratch");
  faults_.resize(static_cast<std::size_t>(max_rows));
  all_rows_.resize(static_cast<std::size_t>(max_rows));
  std::iota(all_rows_.begin(), all_rows_.end(), 0);
  const auto spans = static_cast<std::size_t>(config.context_length / kernels::kSpanPositions + 1);
  const auto pairs = static_cast<std::size_t>(max_sequences * config.num_kv_heads);
  partials_ = Array<float>(spans * pairs * partial_floats_, "attention partials");
  const auto blocks = static_cast<std::size_t>(max_rows / block_rows_ + 1) * static_cast<std::size_t>(config.num_kv_heads);
  items_.reserve(spans * pairs + blocks);
  ranges_.reserve(pairs);
  for (const double theta : config.rope_thetas) ropes_.emplace_back(theta, config.rope_dims, config.context_length);
}

void Ops::begin(const Batch& batch) {
  COUPLET_CHECK(batch.num_rows() <= max_rows_);
  batch_ = batch;
  num_rows_ = batch.num_rows();
  counters_ = {};
  std::fill_n(faults_.begin(), num_rows_, RowFault::none);
  int end = 0;
  for (const SequenceRows& s : batch.sequences) end = std::max(end, s.first_position + s.num_rows);
  for (RopeTable& table : ropes_) table.extend(end, *threads_);
}

template <class Body>
void Ops::for_rows(int num_rows, Body&& body) {
  const int num_items = (num_rows + kRowsAnItem - 1) / kRowsAnItem;
  threads_->parallel_for(num_items, [&](int item, int) {
    const int first = item * kRowsAnItem;
    body(first, std::min(kRowsAnItem, num_rows - first));
  });
}

void Ops::embed(const formats::Tensor& embedding, const Rows& into) {
  const std::size_t row_bytes = embedding.bytes.size() / embedding.num_rows();
  const auto cols = static_cast<std::size_t>(into.cols);
  for_rows(num_rows_, [&](int first, int num) {
    for (int r = first; r < first + num; ++r) {
      const auto token = static_cast<std::size_t>(batch_.tokens[static_cast<std::size_t>(r)]);
      formats::dequantize(embedding.type, embedding.bytes.data() + token * row_bytes, cols, into.row(r));
      if (config_->embedding_scale != 1.0F) kernels_->scale(into.row(r), config_->embedding_scale, cols);
    }
  });
  counters_.weights_bytes += row_bytes * static_cast<std::size_t>(num_rows_);
}

void Ops::norm(const Rows& in, Vector weight, const Rows& out) {
  for_rows(num_rows_, [&](int first, int num) {
    kernels_->rms_norm(in.row(first), in.stride, weight, config_->rms_norm_eps, num, in.cols, out.row(first), out.stride);
  });
}

void Ops::norm_heads(const Rows& heads, Vector weight) {
  const int dim = config_->head_dim, num_heads = heads.cols / dim;
  for_rows(num_rows_, [&](int first, int num) {
    for (int r = first; r < first + num; ++r)
      kernels_->rms_norm(heads.row(r), dim, weight, config_->rms_norm_eps, num_heads, dim, heads.row(r), dim);
  });
}

void Ops::rope(int layer, const Rows& heads) {
  const RopeTable& table = ropes_[static_cast<std::size_t>(config_->layers[static_cast<std::size_t>(layer)].rope_table)];
  const int num_heads = heads.cols / config_->head_dim;
  for (const SequenceRows& s : batch_.sequences) {
    for_rows(s.num_rows, [&](int first, int num) {
      for (int r = first; r < first + num; ++r) {
        const int position = s.first_position + r;
        kernels_->rope(heads.row(s.first_row + r), num_heads, config_->head_dim, table.cosines(position),
                       table.sines(position), table.half());
      }
    });
  }
}

void Ops::silu_mul(const Rows& gate, const Rows& up) {
  for_rows(num_rows_, [&](int first, int num) {
    for (int r = first; r < first + num; ++r)
      kernels_->silu_mul(gate.row(r), up.row(r), static_cast<std::size_t>(gate.cols));
  });
}

void Ops::gelu_mul(const Rows& gate, const Rows& up) {
  for_rows(num_rows_, [&](int first, int num) {
    for (int r = first; r < first + num; ++r)
      kernels_->gelu_mul(gate.row(r), up.row(r), static_cast<std::size_t>(gate.cols));
  });
}

void Ops::add(const Rows& x, const Rows& y) {
  for_rows(num_rows_, [&](int first, int num) {
    for (int r = first; r < first + num; ++r) kernels_->add(x.row(r), y.row(r), static_cast<std::size_t>(x.cols));
  });
}

void Ops::matmul(const Rows& in, std::initializer_list<Product> products) {
  multiply(in, {all_rows_.data(), static_cast<std::size_t>(num_rows_)}, {products.begin(), products.size()}, num_planes_);
}

void Ops::head(Vector norm, const PackedMatrix& weights, std::span<const int> rows, const Rows& logits) {
  const Rows &x = activations_.x, &y = activations_.y;
  for_rows(static_cast<int>(rows.size()), [&](int first, int num) {
    for (int i = first; i < first + num; ++i)
      kernels_->rms_norm(x.row(rows[static_cast<std::size_t>(i)]), x.stride, norm, config_->rms_norm_eps, 1, x.cols,
                         y.row(i), y.stride);
  });
  const Product product{&weights, &logits};
  multiply(y, rows, {&product, 1}, 2);
}

void Ops::quantize(const Rows& in, std::span<const int> rows, int num_planes) {
  const int num_rows = static_cast<int>(rows.size());
  kernels::QuantizedRows& q = activations_.quantized;
  q.num_rows = num_rows;
  q.cols = in.cols;
  q.code_stride = (in.cols + 63) / 64 * 64;
  std::fill_n(poisoned_, num_rows, std::uint8_t{0});
  for_rows(num_rows, [&](int first, int num) {
    kernels_->quantize(in.row(first), in.stride, part_of(q, first, num, num_planes), poisoned_ + first);
  });
  for (int r = 0; r < num_rows; ++r)
    if (poisoned_[r] != 0) note_fault(rows[static_cast<std::size_t>(r)], RowFault::not_finite);
}

void Ops::note_fault(int row, RowFault fault) {
  RowFault expected = RowFault::none;
  std::atomic_ref(faults_[static_cast<std::size_t>(row)])
      .compare_exchange_strong(expected, fault, std::memory_order_relaxed);
}

void Ops::multiply(const Rows& in, std::span<const int> rows, std::span<const Product> products, int num_planes) {
  const int num_rows = static_cast<int>(rows.size());
  bool any_quantized = false;
  for (const Product& p : products) {
    COUPLET_CHECK(p.weights->cols == in.cols && p.out->stride >= padded16(p.weights->rows));
    any_quantized |= kernels::is_quantized(p.weights->type);
  }
  if (any_quantized) quantize(in, rows, num_planes);
  const kernels::QuantizedRows codes = part_of(activations_.quantized, 0, num_rows, num_planes);

  // Items of one product never mix with another's: each product is cut alone, and the cuts are numbered through.
  struct Cut {
    int first_item, panels_an_item;
  };
  std::array<Cut, 4> cuts{};
  COUPLET_CHECK(products.size() <= cuts.size());
  int num_items = 0;
  for (std::size_t i = 0; i < products.size(); ++i) {
    const PackedMatrix& w = *products[i].weights;
    const int wanted = num_rows == 1 ? static_cast<int>(kBytesAnItem / w.panel_bytes) : kPanelsAtOnce;
    cuts[i] = {num_items, std::max(kPanelsAtOnce, wanted / kPanelsAtOnce * kPanelsAtOnce)};
    num_items += (w.num_panels() + cuts[i].panels_an_item - 1) / cuts[i].panels_an_item;
    const auto planes = static_cast<std::uint64_t>(kernels::is_quantized(w.type) ? num_planes : 1);
    counters_.matmul_operations += 2 * planes * static_cast<std::uint64_t>(num_rows) *
                                   static_cast<std::uint64_t>(w.rows) * static_cast<std::uint64_t>(w.cols);
    counters_.weights_bytes += static_cast<std::uint64_t>(w.num_panels()) * w.panel_bytes;
  }
  threads_->parallel_for(num_items, [&](int item, int thread) {
    std::size_t i = products.size() - 1;
    while (cuts[i].first_item > item) --i;
    const PackedMatrix& w = *products[i].weights;
    const auto type = static_cast<std::size_t>(w.type);
    const int first = (item - cuts[i].first_item) * cuts[i].panels_an_item;
    const int num = std::min(cuts[i].panels_an_item, w.num_panels() - first);
    const Rows& out = *products[i].out;
    if (!kernels::is_quantized(w.type))
      kernels_->float_rows[type](w, first, num, in.data, in.stride, num_rows, out.data, out.stride);
    else if (num_rows == 1)
      kernels_->one_row[type](w, first, num, codes, out.data, out.stride, scratch(thread));
    else
      kernels_->many_rows[type](w, first, num, codes, out.data, out.stride, scratch(thread));
  });
}

}  // namespace couplet::model
