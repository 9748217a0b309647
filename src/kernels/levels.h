#pragma once
// The tables of the levels. Only select.cpp decides which one runs.

#include "kernels/kernels.h"

namespace couplet::kernels {

namespace reference {
const KernelTable& table();
}
namespace avx2 {
const KernelTable& table();
}
namespace avx2_vnni {
const KernelTable& table();
}
namespace avx512 {
const KernelTable& table();
}
namespace amx {
const KernelTable& table();
}

}  // namespace couplet::kernels
