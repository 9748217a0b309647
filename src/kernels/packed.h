#pragma once
// The packed weight layout, one for all levels; packed size = file size, but for Q3_K, IQ4_XS (whose 6-bit scales become
// bytes) and coded. A panel is 16 output rows; blocks of a panel
// follow each other along K. "Lane" (r, t) means byte r * 4 + t of a 64-byte vector: row r, the t-th of 4 consecutive k,
// which is what vpdpbusd and an AMX B tile both read. Scales stand in a block's head as [16 rows] f16.
//
//   type  block  head                                   codes
//   Q4_0  32     d                                      4 vectors; vector j: low nibble k = 4j + t, high 16 + 4j + t
//   Q4_1  32     d, m                                   as Q4_0
//   Q5_0  32     d                                      as Q4_0, then one vector: bit j of lane (r, t) is the fifth bit
//                                                       of k = 4j + t, j in 0..7
//   Q5_1  32     d, m                                   as Q5_0
//   Q8_0  32     d                                      8 vectors; vector j: k = 4j + t, signed
//   Q4_K  256    d, dmin, 12 x [16] bytes of scales     8 sub-blocks of 32, each as Q4_0
//   Q5_K  256    as Q4_K                                8 sub-blocks of 32, each as Q5_0
//   Q6_K  256    d, 16 x [16] int8 scales               8 parts of 32: 4 vectors of low nibbles as Q4_0, then 2 vectors:
//                                                       bits 2i, 2i + 1 of vector h's lane are the high bits of
//                                                       k = 16h + 4i + t
//   Q2_K   256   d, dmin, 16 x [16] bytes: sc low,      8 parts of 32: 2 vectors; bits 2i, 2i + 1 of vector h's lane are
//                m high nibble                          the code of k = 16h + 4i + t
//   Q3_K   256   d, 16 x [16] int8 scales               8 parts as Q2_K's, each followed by a vector as Q5_0's: third bits
//   IQ4_NL 32    d                                      as Q4_0; a nibble is a place in kIq4Codes
//   IQ4_XS 256   d, 8 x [16] int8 scales                8 parts as IQ4_NL's
//   MXFP4  32    [16] bytes e: d is 2^(e - 128)         as Q4_0; a nibble is a place in kMxfp4Codes
//   coded  256   d as [16] f32, 16 x [16] int8 scales,  8 parts as Q4_0; a nibble is a place in the head's codes
//                [16] int8 codes, -63 to 63
//   Scales of Q4_K and Q5_K: byte [s][r], s < 8: low 6 bits sc[s], high 2 bits the high bits of m[s]; byte [8 + s / 2][r]:
//   nibble s % 2 the low bits of m[s].
//   F32, F16, BF16: [k][16 rows].
//
// A file row of `coded` is, for every 256 values, [d as f32] [16 int8 codes] [16 int8 scales, one for every 16 values] and
// 8 x 16 bytes of nibbles as Q4_0's; all rows of a panel have the first one's codes.

#include <cstddef>

#include "kernels/kernels.h"

namespace couplet::kernels {

// The portable pack_panel; levels may have a faster one with the same bytes.
void pack_panel_portable(WeightType type, const std::byte* const rows[kPanelRows], int cols, std::byte* panel);

}  // namespace couplet::kernels
