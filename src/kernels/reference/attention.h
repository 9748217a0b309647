#pragma once
// What the reference's attention over every cache format shares: rule 6 of docs/numerics.md.

#include "kernels/kernels.h"

namespace couplet::kernels::reference {

struct Visible {  // slots of the span: [begin, end) of 0..256; empty where end <= begin
  int begin = 0;
  int end = 0;
};
Visible visible_to(const AttentionSpan& span, int row);

// A product of query and key -> its score, scaled and capped.
float capped_score(const AttentionSpan& span, float product);

// Scores of the visible slots -> weights, their maximum and their sum.
void softmax(float scores[kSpanPositions], Visible visible, float* max, float* sum);

}  // namespace couplet::kernels::reference
