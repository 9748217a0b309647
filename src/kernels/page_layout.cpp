#include "kernels/page_layout.h"

namespace couplet::kernels {

std::size_t page_bytes(PageFormat format, int head_dim) {
  if (format == PageFormat::f16) return 4 * kPagePositions * static_cast<std::size_t>(padded16(head_dim));
  return static_cast<std::size_t>(IntegerPage(head_dim, format == PageFormat::q16_fine ? 2 : 1).end);
}

}  // namespace couplet::kernels
