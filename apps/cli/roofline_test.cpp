#include "roofline.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace couplet::cli {
namespace {

std::size_t find_mark(const std::vector<std::string>& lines, char mark, std::size_t& column) {
  for (std::size_t row = 0; row < lines.size(); ++row) {
    column = lines[row].find(mark);
    if (column != std::string::npos) return row;
  }
  return lines.size();
}

TEST(Roofline, StaysInItsWidthWhateverTheFigures) {
  for (const int width : {40, 80, 120}) {
    for (const double peak : {1e9, 1.5e12, 4e14}) {
      for (const double intensity : {0.01, 1.0, 95.0, 1e5}) {
        for (const double rate : {1.0, peak / 2, peak * 3}) {
          for (const std::string& line : draw_roofline({peak, 5e10}, {{'P', "prefill", intensity, rate}}, width))
            EXPECT_LE(line.size(), static_cast<std::size_t>(width));
        }
      }
    }
  }
}

TEST(Roofline, PlacesTheStages) {
  const auto lines = draw_roofline({1.5e12, 5.6e10}, {{'P', "prefill", 95, 6e11}, {'D', "decode", 2.8, 1.4e11}}, 80);
  std::size_t prefill_column = 0, decode_column = 0;
  const std::size_t prefill_row = find_mark(lines, 'P', prefill_column),
                    decode_row = find_mark(lines, 'D', decode_column);
  ASSERT_LT(prefill_row, lines.size());
  ASSERT_LT(decode_row, lines.size());
  EXPECT_LT(prefill_row, decode_row);        // faster is higher
  EXPECT_GT(prefill_column, decode_column);  // more work a byte is further right
  EXPECT_NE(lines[1].find("1.5 T |"), std::string::npos) << lines[1];
  EXPECT_NE(lines[1].find("-----"), std::string::npos) << lines[1];
  const auto slope =
      std::count_if(lines.begin(), lines.end(), [](const std::string& line) { return line.find('/') < 40; });
  EXPECT_GE(slope, 4);
}

TEST(Roofline, AStageAboveTheRoofIsDrawnAboveIt) {
  const auto lines = draw_roofline({1e12, 5e10}, {{'P', "prefill", 95, 3e12}}, 80);
  std::size_t column = 0;
  const std::size_t row = find_mark(lines, 'P', column);
  std::size_t roof_row = 0;
  while (roof_row < lines.size() && lines[roof_row].find("-----") == std::string::npos) ++roof_row;
  ASSERT_LT(row, lines.size());
  EXPECT_LT(row, roof_row);
  EXPECT_NE(lines[1].find("3.0 T |"), std::string::npos) << lines[1];
}

}  // namespace
}  // namespace couplet::cli
