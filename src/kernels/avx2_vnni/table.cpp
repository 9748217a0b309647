#include "kernels/avx2/product_kernels.h"
#include "kernels/avx2_vnni/float_kernels.h"
#include "kernels/avx2_vnni/product_kernels.h"
#include "kernels/level_name.h"
#include "kernels/levels.h"
#include "kernels/packed.h"

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

constexpr char kName[] = COUPLET_LEVEL_NAME;

}  // namespace

using namespace avx2;  // what this level does not have itself: it quantizes and multiplies unquantized weights alike

#include "kernels/table.inl"

}  // namespace couplet::kernels::COUPLET_LEVEL
