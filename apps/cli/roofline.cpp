#include "roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace couplet::cli {
namespace {

constexpr int kHeight = 9;
constexpr int kMargin = 9;  // columns of the vertical axis

struct Axis {
  double least, greatest;
  int cells;

  int cell(double value) const {
    const double share = std::log(std::max(value, least) / least) / std::log(greatest / least);
    return std::clamp(static_cast<int>(std::lround(share * (cells - 1))), 0, cells - 1);
  }
  double value(int cell) const {
    return least * std::pow(greatest / least, static_cast<double>(cell) / (cells - 1));
  }
};

double power_of_ten_below(double value) { return std::pow(10, std::floor(std::log10(value))); }

// "1.5 T", "120 G".
std::string rate(double per_s) {
  const bool tera = per_s >= 1e12;
  const double value = per_s / (tera ? 1e12 : 1e9);
  return fmt::format("{:.{}f} {}", value, value < 10 ? 1 : 0, tera ? 'T' : 'G');
}

struct Axes {
  Axis x, y;
};

// From a power of ten to ten times the ridge, and so far that every point has its place.
Axes axes(const Roof& roof, const std::vector<RooflinePoint>& points, int columns, int rows) {
  const double ridge = roof.operations_per_s / roof.bytes_per_s;
  double least_x = 1, greatest_x = 10 * ridge, least_y = roof.operations_per_s / 30,
         greatest_y = roof.operations_per_s;
  for (const RooflinePoint& point : points) {
    least_x = std::min(least_x, point.operations_per_byte);
    greatest_x = std::max(greatest_x, 2 * point.operations_per_byte);
    least_y = std::min(least_y, point.operations_per_s);
    greatest_y = std::max(greatest_y, point.operations_per_s);  // the roof was measured at another moment
  }
  return {{power_of_ten_below(least_x), greatest_x, columns}, {least_y / 1.5, greatest_y, rows}};
}

}  // namespace

std::vector<std::string> draw_roofline(const Roof& roof, const std::vector<RooflinePoint>& points,
                                       int width) {
  const auto [x, y] = axes(roof, points, std::min(width - kMargin - 10, 60), kHeight);

  std::vector<std::string> plot(kHeight, std::string(static_cast<std::size_t>(x.cells), ' '));
  const auto at = [&](int column, int row) -> char& {
    return plot[static_cast<std::size_t>(kHeight - 1 - row)][static_cast<std::size_t>(column)];
  };
  for (int column = 0; column < x.cells; ++column) {
    const double limit = roof.bytes_per_s * x.value(column);
    if (limit < y.least) continue;
    const bool flat = limit >= roof.operations_per_s;
    at(column, y.cell(std::min(limit, roof.operations_per_s))) = flat ? '-' : '/';
  }
  for (const RooflinePoint& point : points)
    at(x.cell(point.operations_per_byte), y.cell(point.operations_per_s)) = point.mark;

  std::vector<std::string> lines = {"   op/s"};
  for (int i = 0; i < kHeight; ++i) {
    const bool labelled = i == 0 || i == kHeight - 1;
    const std::string label = labelled ? rate(i == 0 ? y.greatest : y.least) : "";
    std::string line = fmt::format("{:>{}} |{}", label, kMargin - 2, plot[static_cast<std::size_t>(i)]);
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(line);
  }
  lines.push_back(std::string(kMargin - 1, ' ') + "+" + std::string(static_cast<std::size_t>(x.cells), '-') +
                  " op/byte");
  std::string ticks(static_cast<std::size_t>(kMargin + x.cells + 6), ' ');
  for (double tick = x.least; tick <= x.greatest; tick *= 10) {
    const std::string text = fmt::format("{:g}", tick);
    ticks.replace(static_cast<std::size_t>(kMargin + x.cell(tick)), text.size(), text);
  }
  ticks.erase(ticks.find_last_not_of(' ') + 1);
  lines.push_back(ticks);
  return lines;
}

std::string draw_roofline_svg(const Roof& roof, const std::vector<RooflinePoint>& points) {
  constexpr int kWidth = 640, kPlotHeight = 260, kLeft = 110, kTop = 16, kRight = 20, kBottom = 44;
  const auto [x, y] = axes(roof, points, kWidth - kLeft - kRight, kPlotHeight);
  const auto at_x = [&](double value) { return kLeft + x.cell(value); };
  const auto at_y = [&](double value) { return kTop + kPlotHeight - 1 - y.cell(value); };
  const int floor = kTop + kPlotHeight;
  std::string svg = fmt::format(
      "<svg class=\"roofline\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Roofline: operations a second over "
      "operations a byte\">\n", kWidth, floor + kBottom);
  for (double tick = x.least; tick <= x.greatest; tick *= 10)
    svg += fmt::format("<line class=\"grid\" x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\"/><text x=\"{0}\" y=\"{3}\" "
                       "text-anchor=\"middle\">{4:g}</text>\n", at_x(tick), kTop, floor, floor + 18, tick);
  for (const double tick : {y.greatest, y.least})
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{} op/s</text>\n", kLeft - 8, at_y(tick) + 4, rate(tick));
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">operations a byte</text>\n",
                     kLeft + (kWidth - kLeft - kRight) / 2, floor + 38);
  const double first = std::max(x.least, y.least / roof.bytes_per_s), ridge = roof.operations_per_s / roof.bytes_per_s;
  svg += fmt::format("<polyline class=\"roof\" points=\"{},{} {},{} {},{}\"/>\n", at_x(first), at_y(first * roof.bytes_per_s),
                     at_x(ridge), at_y(roof.operations_per_s), at_x(x.greatest), at_y(roof.operations_per_s));
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">arithmetic</text>\n", at_x(x.greatest) - 4,
                     at_y(roof.operations_per_s) + 18);
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">memory</text>\n", at_x(std::sqrt(first * ridge)) - 10,
                     at_y(std::sqrt(first * ridge) * roof.bytes_per_s));
  for (const RooflinePoint& point : points) {
    const int px = at_x(point.operations_per_byte), py = at_y(point.operations_per_s);
    svg += fmt::format("<circle class=\"{0}\" cx=\"{1}\" cy=\"{2}\" r=\"6\"/><text class=\"{0}\" x=\"{3}\" y=\"{4}\">{0}</text>\n",
                       point.name, px, py, px + 11, py + 18);
  }
  return svg + "</svg>\n";
}

}  // namespace couplet::cli
