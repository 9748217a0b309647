#include "model/ops.h"

#include <algorithm>
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

int widest_input(const ModelConfig& config) {
  const LatentConfig& latent = config.latent;
  return std::max({config.hidden_size, config.q_size(), config.intermediate_size, config.expert_size,
                   config.shared_expert_size, latent.query_rank, config.num_heads * latent.value_dim, latent.key_dim});
}

// Rows that are taken apart by expert or by head, for each row of the batch.
int slots_a_row(const ModelConfig& config) {
  return std::max({1, config.num_used_experts, config.latent.rank > 0 ? config.num_heads : 0});
}

std::size_t code_stride(int cols) { return static_cast<std::size_t>((cols + 63) / 64 * 64); }

Activations take_activations(Carver& carver, const ModelConfig& config, int max_rows) {
  Activations a;
  a.x = take_rows(carver, max_rows, config.hidden_size);
  a.y = take_rows(carver, max_rows, config.hidden_size);
  a.q = take_rows(carver, max_rows, config.q_size());
  a.k = take_rows(carver, max_rows, config.kv_size());
  a.v = take_rows(carver, max_rows, config.kv_size());
  a.attended = take_rows(carver, max_rows, config.q_size());
  const int inner = std::max(config.intermediate_size, config.shared_expert_size);
  a.gate = take_rows(carver, max_rows, inner).first(config.intermediate_size);
  a.up = take_rows(carver, max_rows, inner).first(config.intermediate_size);
  const int max_slots = max_rows * config.num_used_experts;
  a.router = take_rows(carver, max_rows, config.num_experts);
  a.expert_x = take_rows(carver, max_slots, config.hidden_size);
  a.expert_y = take_rows(carver, max_slots, config.hidden_size);
  a.expert_gate = take_rows(carver, max_slots, config.expert_size);
  a.expert_up = take_rows(carver, max_slots, config.expert_size);
  const LatentConfig& latent = config.latent;
  const int max_heads = latent.rank > 0 ? max_rows * config.num_heads : 0;
  const int head_cols = std::max({latent.rank, latent.key_dim, latent.value_dim});
  a.latent_query = take_rows(carver, max_rows, latent.query_rank);
  a.head_query = take_rows(carver, max_rows, max_heads > 0 ? config.num_heads * (latent.key_dim + config.rope_dims) : 0);
  a.head_value = take_rows(carver, max_rows, config.num_heads * latent.value_dim);
  a.head_in = take_rows(carver, max_heads, head_cols);
  a.head_out = take_rows(carver, max_heads, head_cols);
  const std::size_t codes = std::max({static_cast<std::size_t>(max_rows) * code_stride(widest_input(config)),
                                      static_cast<std::size_t>(max_slots) * code_stride(std::max(config.hidden_size, config.expert_size)),
                                      static_cast<std::size_t>(max_heads) * code_stride(head_cols)});
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
    poisoned_ = carver.take<std::uint8_t>(static_cast<std::size_t>(max_rows * slots_a_row(config)));
    block_states_ = carver.take<float>(2 * state_floats_ * num_threads);
    // No type takes more than four bytes a value.
    embedding_rows_ = carver.take<std::byte>(num_threads * static_cast<std::size_t>(config.hidden_size) * sizeof(float));
  };
  Carver measure;
  carve(measure);
  memory_ = MappedMemory(measure.used(), "activations");
  Carver carver(memory_.data());
  carve(carver);

  scratch_bytes_ = (kernels.scratch_bytes(widest_input(config), config.head_dim) + 63) / 64 * 64;
  // Sinks need one group's state, the choice of experts a score for each.
  scratch_bytes_ = std::max({scratch_bytes_, partial_floats_ * sizeof(float),
                             static_cast<std::size_t>(padded16(config.num_experts)) * sizeof(double)});
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
  for (const RopeConfig& rope : config.ropes) ropes_.emplace_back(rope, config.rope_dims, config.context_length);
  const auto max_pieces = static_cast<std::size_t>(std::max({4, 2 * config.num_experts, config.num_heads}));
  pieces_.reserve(max_pieces);
  cuts_.reserve(max_pieces);
  const auto slots = static_cast<std::size_t>(max_rows * config.num_used_experts);
  chosen_.resize(slots);
  chosen_weights_.resize(slots);
  slot_of_.resize(slots);
  row_of_slot_.resize(static_cast<std::size_t>(max_rows * slots_a_row(config)));
  first_slot_.resize(static_cast<std::size_t>(config.num_experts) + 1);
}

void Ops::begin(const Batch& batch) {
  COUPLET_CHECK(batch.num_rows() <= max_rows_);
  batch_ = batch;
  num_rows_ = batch.num_rows();
  counters_ = {};
  sequence_counters_.assign(batch.sequences.size(), {});
  std::fill_n(faults_.begin(), num_rows_, RowFault::none);
  int end = 0;
  for (const SequenceRows& s : batch.sequences) end = std::max(end, s.first_position + s.num_rows);
  for (RopeTable& table : ropes_) table.extend(end, *threads_);
}

template <class Body>
void Ops::for_rows_by_thread(int num_rows, Body&& body) {
  const int num_items = (num_rows + kRowsAnItem - 1) / kRowsAnItem;
  threads_->parallel_for(num_items, [&](int item, int thread) {
    const int first = item * kRowsAnItem;
    body(first, std::min(kRowsAnItem, num_rows - first), thread);
  });
}

template <class Body>
void Ops::for_rows(int num_rows, Body&& body) {
  for_rows_by_thread(num_rows, [&](int first, int num, int) { body(first, num); });
}

void Ops::embed(const formats::Tensor& embedding, const Rows& into) {
  const std::size_t row_bytes = embedding.row_bytes(), cols = static_cast<std::size_t>(into.cols);
  for_rows_by_thread(num_rows_, [&](int first, int num, int thread) {
    std::byte* made = embedding_rows_ + static_cast<std::size_t>(thread) * row_bytes;
    for (int r = first; r < first + num; ++r) {
      const auto token = static_cast<std::uint64_t>(batch_.tokens[static_cast<std::size_t>(r)]);
      formats::dequantize(embedding.type, embedding.row(token, made), cols, into.row(r));
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
        kernels_->rope(heads.row(s.first_row + r) + config_->rope_begin, num_heads, config_->head_dim,
                       table.cosines(position), table.sines(position), table.half());
      }
    });
  }
}

Ops::GateKernel Ops::gate_kernel(Gating gating) const {
  switch (gating) {
    case Gating::silu: return kernels_->silu_mul;
    case Gating::gelu: return kernels_->gelu_mul;
    case Gating::clamped_silu: return kernels_->clamped_silu_mul;
  }
  throw Fault("gating without a kernel");
}

void Ops::gate_mul(Gating gating, const Rows& gate, const Rows& up) {
  const GateKernel kernel = gate_kernel(gating);
  for_rows(num_rows_, [&](int first, int num) {
    for (int r = first; r < first + num; ++r) kernel(gate.row(r), up.row(r), static_cast<std::size_t>(gate.cols));
  });
}

void Ops::add_bias(const Rows& x, Vector bias) {
  for_rows(num_rows_, [&](int first, int num) { kernels_->add_bias(x.row(first), x.stride, bias, num, x.cols); });
}

void Ops::add_scaled(const Rows& x, const Rows& y) {
  for_rows(num_rows_, [&](int first, int num) {
    for (int r = first; r < first + num; ++r)
      kernels_->add_scaled(x.row(r), y.row(r), config_->residual_scale, static_cast<std::size_t>(x.cols));
  });
}

void Ops::add(const Rows& x, const Rows& y) {
  for_rows(num_rows_, [&](int first, int num) {
    for (int r = first; r < first + num; ++r) kernels_->add(x.row(r), y.row(r), static_cast<std::size_t>(x.cols));
  });
}

void Ops::matmul(const Rows& in, std::initializer_list<Product> products) {
  pieces_.clear();
  for (const Product& p : products) pieces_.push_back({p.weights, p.out, 0, num_rows_});
  multiply(in, {all_rows_.data(), static_cast<std::size_t>(num_rows_)}, pieces_, num_planes_);
}

void Ops::head(Vector norm, const PackedMatrix& weights, std::span<const int> rows, const Rows& logits) {
  const Rows &x = activations_.x, &y = activations_.y;
  for_rows(static_cast<int>(rows.size()), [&](int first, int num) {
    for (int i = first; i < first + num; ++i)
      kernels_->rms_norm(x.row(rows[static_cast<std::size_t>(i)]), x.stride, norm, config_->rms_norm_eps, 1, x.cols,
                         y.row(i), y.stride);
  });
  const int num_rows = static_cast<int>(rows.size());
  const Piece piece{&weights, &logits, 0, num_rows};
  multiply(y, rows, {&piece, 1}, 2);
  if (config_->logit_scale == 1.0F && config_->logit_cap == 0.0F) return;
  threads_->parallel_for(num_rows, [&](int row, int) {
    const auto count = static_cast<std::size_t>(logits.cols);
    if (config_->logit_scale != 1.0F) kernels_->scale(logits.row(row), config_->logit_scale, count);
    if (config_->logit_cap != 0.0F) kernels_->soft_cap(logits.row(row), config_->logit_cap, count);
  });
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

// Items of one piece never mix with another's: each is cut alone, and the cuts are numbered through.
int Ops::cut_into_items(std::span<const Piece> pieces, int num_planes) {
  cuts_.clear();
  int num_items = 0;
  for (const Piece& piece : pieces) {
    const PackedMatrix& w = *piece.weights;
    const int wanted = piece.num_rows == 1 ? static_cast<int>(kBytesAnItem / w.panel_bytes) : kPanelsAtOnce;
    cuts_.push_back({num_items, std::max(kPanelsAtOnce, wanted / kPanelsAtOnce * kPanelsAtOnce)});
    num_items += (w.num_panels() + cuts_.back().panels_an_item - 1) / cuts_.back().panels_an_item;
    const bool is_integer = kernels::is_quantized(w.type);
    const std::uint64_t operations = 2 * static_cast<std::uint64_t>(is_integer ? num_planes : 1) *
                                     static_cast<std::uint64_t>(piece.num_rows) * static_cast<std::uint64_t>(w.rows) *
                                     static_cast<std::uint64_t>(w.cols);
    counters_.matmul_operations += operations;
    if (!is_integer) counters_.float_operations += operations;
    counters_.weights_bytes += static_cast<std::uint64_t>(w.num_panels()) * w.panel_bytes;
  }
  return num_items;
}

void Ops::multiply(const Rows& in, std::span<const int> rows, std::span<const Piece> pieces, int num_planes) {
  bool any_quantized = false;
  for (const Piece& piece : pieces) {
    COUPLET_CHECK(piece.weights->cols == in.cols && piece.out->stride >= padded16(piece.weights->rows));
    any_quantized |= kernels::is_quantized(piece.weights->type);
  }
  if (any_quantized) quantize(in, rows, num_planes);
  const int num_items = cut_into_items(pieces, num_planes);
  threads_->parallel_for(num_items, [&](int item, int thread) {
    std::size_t i = pieces.size() - 1;
    while (cuts_[i].first_item > item) --i;
    const Piece& piece = pieces[i];
    const PackedMatrix& w = *piece.weights;
    const int first = (item - cuts_[i].first_item) * cuts_[i].panels_an_item;
    const int num = std::min(cuts_[i].panels_an_item, w.num_panels() - first);
    const Rows& out = *piece.out;
    float* const to = out.row(piece.first_row);
    if (!kernels::is_quantized(w.type)) {
      kernels_->float_rows(w, first, num, in.row(piece.first_row), in.stride, piece.num_rows, to, out.stride);
      return;
    }
    const kernels::QuantizedRows codes = part_of(activations_.quantized, piece.first_row, piece.num_rows, num_planes);
    const auto product = piece.num_rows == 1 ? kernels_->one_row : kernels_->many_rows;
    product(w, first, num, codes, to, out.stride, scratch(thread));
  });
}

}  // namespace couplet::model
