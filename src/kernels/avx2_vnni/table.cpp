#include "kernels/avx2/product_kernels.h"
#include "kernels/avx2_vnni/float_kernels.h"
#include "kernels/avx2_vnni/product_kernels.h"
#include "kernels/levels.h"
#include "kernels/packed.h"

#define COUPLET_NAME(level) #level
#define COUPLET_NAME_OF(level) COUPLET_NAME(level)

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

constexpr char kName[] = COUPLET_NAME_OF(COUPLET_LEVEL);

}  // namespace

using namespace avx2;  // what this level does not have itself: it quantizes and multiplies unquantized weights alike

#include "kernels/table.inl"

}  // namespace couplet::kernels::COUPLET_LEVEL
