#include "kernels/avx2/float_kernels.h"
#include "kernels/avx2/product_kernels.h"
#include "kernels/levels.h"
#include "kernels/packed.h"

namespace couplet::kernels::avx2 {
namespace {

constexpr char kName[] = "avx2";

}  // namespace

#include "kernels/table.inl"

}  // namespace couplet::kernels::avx2
