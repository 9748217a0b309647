#include "kernels/amx/product_kernels.h"
#include "kernels/avx512/float_kernels.h"
#include "kernels/avx512/product_kernels.h"
#include "kernels/level_name.h"
#include "kernels/levels.h"
#include "kernels/packed.h"

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

constexpr char kName[] = COUPLET_LEVEL_NAME;

}  // namespace

using namespace avx512;  // every kernel that this level does not have itself

#include "kernels/table.inl"

}  // namespace couplet::kernels::COUPLET_LEVEL
