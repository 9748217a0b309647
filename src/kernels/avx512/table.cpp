#include "kernels/avx512/float_kernels.h"
#include "kernels/avx512/product_kernels.h"
#include "kernels/levels.h"
#include "kernels/packed.h"

namespace couplet::kernels::avx512 {
namespace {

constexpr char kName[] = "avx512";

}  // namespace

#include "kernels/table.inl"

}  // namespace couplet::kernels::avx512
