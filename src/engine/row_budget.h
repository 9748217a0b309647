#pragma once
// How many prompt rows a step may take while sequences decode, so that it stays within a target: what steps took in the
// recent past says so. Times decide who runs when, never a bit. Knows no clock: whoever runs steps reports them.

#include <array>
#include <vector>

namespace couplet::engine {

// What prompt rows cost, in units of a row that attends to nothing: a row at position p costs 1 + p / positions_a_row,
// where layers with a window count no further than it.
struct PromptCost {
  struct Layers {
    double share = 1;  // of all layers
    int window = 0;    // 0: none
  };
  double positions_a_row = 1e9;
  std::vector<Layers> layers = {{}};

  double of_row(int position) const;
  double of_rows(int first_position, int num_rows) const;
  // The most rows from first_position on that cost no more than `units`.
  int rows_within(double units, int first_position) const;
};

class RowBudget {
 public:
  // Prompts go on by so much in every step that takes any.
  static constexpr int kLeastRows = 2;
  // Steps that aim at the target itself would miss it every other time.
  static constexpr double kAim = 0.95;
  // Steps with prompt rows before one goes without, to measure what decoding alone takes now.
  static constexpr int kProbeEvery = 64;
  // Where that was never measured for as many sequences, a step goes without sooner, but not more often than this.
  static constexpr int kProbeGap = 8;

  // target_ms 0: twice what decoding takes without prompt rows.
  RowBudget(int chunk_rows, double target_ms) : chunk_rows_(chunk_rows), target_ms_(target_ms) {}

  // Units of prompt rows for the next step; 0: it should go without.
  double units(int num_decoding) const;
  // What a step took.
  void note(int num_decoding, double prompt_units, double ms);

 private:
  // The last few of a kind; the median forgives the odd one that something else held up.
  class Recent {
   public:
    void add(double value);
    bool empty() const { return count_ == 0; }
    double median() const;

   private:
    static constexpr int kKept = 7;
    std::array<double, kKept> values_{};
    int count_ = 0, next_ = 0;
  };
  struct Decoding {  // about as many sequences
    Recent ms;
    long noted_at = 0;
  };
  // Two an octave: decoding reads the same weights for one more.
  static constexpr int kClasses = 64;
  static int class_of(int num_decoding);

  // The nearest measured class's, from below where there is one; null: nothing is known.
  const Decoding* nearest(int num_decoding) const;
  bool wants_probe(int num_decoding) const;

  int chunk_rows_;
  double target_ms_;
  std::array<Decoding, kClasses> decoding_;
  Recent alone_unit_ms_;  // of a unit, in steps of prompt rows only
  Recent mixed_unit_ms_;  // of a unit, beside decoding sequences
  long num_mixed_ = 0;
  long mixed_since_probe_ = kProbeGap;
};

}  // namespace couplet::engine
