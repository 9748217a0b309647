#pragma once
// The grids that the IQ1, IQ2 and IQ3 types choose their values from: an index in the file names a point of eight or four
// values. A value is a place in a short list of magnitudes: two bits each in points of eight, four in points of four, the
// first value lowest.

#include <cstdint>

namespace couplet::formats {

extern const std::uint16_t kIq1Grid[2048];
extern const std::uint16_t kIq2XxsGrid[256];
extern const std::uint16_t kIq2XsGrid[512];
extern const std::uint16_t kIq2SGrid[1024];
extern const std::uint16_t kIq3XxsGrid[256];  // of four
extern const std::uint16_t kIq3SGrid[512];    // of four

}  // namespace couplet::formats
