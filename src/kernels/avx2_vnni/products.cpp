#include "kernels/avx2_vnni/product_kernels.h"

#include "kernels/avx2_vnni/dots.h"
#include "kernels/avx2/products.inl"
