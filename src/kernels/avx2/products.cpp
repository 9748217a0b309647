#include "kernels/avx2/product_kernels.h"

#include "kernels/avx2/dots.h"
#include "kernels/avx2/products.inl"
