#pragma once
// COUPLET_LEVEL, the namespace of this level: the level itself, or its stand-in for tests, with emulated tiles.

#if defined(__AMX_INT8__)
#define COUPLET_LEVEL amx
#else
#define COUPLET_LEVEL amx_emulated
#endif
