#include "engine/row_budget.h"

#include <algorithm>
#include <bit>

namespace couplet::engine {
namespace {

constexpr double kTargetOfDecode = 2;
// A prompt row is never free: no less than this share of a step's time is its rows', whatever was measured.
constexpr double kLeastShare = 0.1;
// Fewer prompt rows alone in a step say more about reading the weights than about rows.
constexpr double kUnitsToLearnFrom = 64;

}  // namespace

double PromptCost::of_row(int position) const {
  double positions = 0;
  for (const Layers& l : layers) positions += l.share * (l.window == 0 ? position : std::min(position, l.window));
  return 1 + positions / positions_a_row;
}

double PromptCost::of_rows(int first_position, int num_rows) const {
  return num_rows * of_row(first_position + num_rows / 2);
}

int PromptCost::rows_within(double units, int first_position) const {
  // Costs rise slowly: what fits at the first row's price is corrected by the price in its middle.
  int rows = static_cast<int>(units / of_row(first_position));
  for (int i = 0; i < 3; ++i) rows = static_cast<int>(units / of_row(first_position + rows / 2));
  return rows;
}

void RowBudget::Recent::add(double value) {
  values_[static_cast<std::size_t>(next_)] = value;
  next_ = (next_ + 1) % kKept;
  count_ = std::min(count_ + 1, kKept);
}

double RowBudget::Recent::median() const {
  std::array<double, kKept> values = values_;
  const auto middle = values.begin() + (count_ - 1) / 2;
  std::nth_element(values.begin(), middle, values.begin() + count_);
  return *middle;
}

int RowBudget::class_of(int num_decoding) {
  const int octave = std::bit_width(static_cast<unsigned>(num_decoding)) - 1;
  const int upper_half = octave > 0 ? num_decoding >> (octave - 1) & 1 : 0;
  return 2 * octave + upper_half;
}

const RowBudget::Decoding* RowBudget::nearest(int num_decoding) const {
  const int own = class_of(num_decoding);
  const auto measured = [this](int c) { return !decoding_[static_cast<std::size_t>(c)].ms.empty(); };
  for (int c = own; c >= 0; --c)
    if (measured(c)) return &decoding_[static_cast<std::size_t>(c)];
  for (int c = own + 1; c < kClasses; ++c)
    if (measured(c)) return &decoding_[static_cast<std::size_t>(c)];
  return nullptr;
}

bool RowBudget::wants_probe(int num_decoding) const {
  if (mixed_since_probe_ < kProbeGap) return false;
  const Decoding& own = decoding_[static_cast<std::size_t>(class_of(num_decoding))];
  return own.ms.empty() || num_mixed_ - own.noted_at >= kProbeEvery;
}

double RowBudget::units(int num_decoding) const {
  if (num_decoding == 0) return chunk_rows_;
  if (wants_probe(num_decoding)) return 0;
  const double least = std::min(kLeastRows, chunk_rows_);
  const Recent& unit_ms = mixed_unit_ms_.empty() ? alone_unit_ms_ : mixed_unit_ms_;
  const Decoding* const decoding = nearest(num_decoding);
  if (unit_ms.empty() || decoding == nullptr) return least;
  const double decode_ms = decoding->ms.median();
  const double target_ms = target_ms_ > 0 ? target_ms_ : kTargetOfDecode * decode_ms;
  return std::clamp((kAim * target_ms - decode_ms) / unit_ms.median(), least, static_cast<double>(chunk_rows_));
}

void RowBudget::note(int num_decoding, double prompt_units, double ms) {
  if (num_decoding == 0) {
    if (prompt_units >= kUnitsToLearnFrom) alone_unit_ms_.add(ms / prompt_units);
    return;
  }
  if (prompt_units == 0) {
    Decoding& own = decoding_[static_cast<std::size_t>(class_of(num_decoding))];
    own.ms.add(ms);
    own.noted_at = num_mixed_;
    mixed_since_probe_ = 0;
    return;
  }
  ++num_mixed_;
  ++mixed_since_probe_;
  if (const Decoding* decoding = nearest(num_decoding); decoding != nullptr)
    mixed_unit_ms_.add(std::max(ms - decoding->ms.median(), kLeastShare * ms) / prompt_units);
}

}  // namespace couplet::engine
