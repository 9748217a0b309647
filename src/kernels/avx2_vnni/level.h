#pragma once
// COUPLET_LEVEL, the namespace of this level: the level itself, or its stand-in for tests on machines without AVX-VNNI.

#if defined(__AVXVNNI__)
#define COUPLET_LEVEL avx2_vnni
#else
#define COUPLET_LEVEL avx2_vnni_evex
#endif
