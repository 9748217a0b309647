#include "kernels/reference/float_kernels.h"
#include "kernels/reference/product_kernels.h"
#include "kernels/levels.h"
#include "kernels/packed.h"

namespace couplet::kernels::reference {
namespace {

constexpr char kName[] = "reference";

}  // namespace

#include "kernels/table.inl"

}  // namespace couplet::kernels::reference
