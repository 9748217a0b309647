#pragma once
// The two stages under the machine's roof, in text and as a picture: below the ridge memory is the limit, right of it
// arithmetic.

#include <string>
#include <vector>

namespace couplet::cli {

struct RooflinePoint {
  char mark = ' ';        // 'P', 'D'
  const char* name = "";  // "prefill"
  double operations_per_byte = 0;
  double operations_per_s = 0;
  bool is_above = false;  // the roof, beyond what measurements scatter
};

struct Roof {
  double operations_per_s = 0;  // the arithmetic's limit
  double bytes_per_s = 0;       // the memory's
};

// Lines without newlines, at most `width` columns, ASCII alone; both axes are logarithmic.
std::vector<std::string> draw_roofline(const Roof& roof, const std::vector<RooflinePoint>& points, int width);

// The same as an <svg> element. It takes its colours from the page: classes roof, grid, prefill and decode.
std::string draw_roofline_svg(const Roof& roof, const std::vector<RooflinePoint>& points);

}  // namespace couplet::cli
