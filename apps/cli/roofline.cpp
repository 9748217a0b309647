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

}  // namespace

std::vector<std::string> draw_roofline(const Roof& roof, const std::vector<RooflinePoint>& points,
                                       int width) {
  const double ridge = roof.operations_per_s / roof.bytes_per_s;
  double least_x = 1, greatest_x = 10 * ridge, least_y = roof.operations_per_s / 30,
         greatest_y = roof.operations_per_s;
  for (const RooflinePoint& point : points) {
    least_x = std::min(least_x, point.operations_per_byte);
    greatest_x = std::max(greatest_x, 2 * point.operations_per_byte);
    least_y = std::min(least_y, point.operations_per_s);
    greatest_y = std::max(greatest_y, point.operations_per_s);  // the roof was measured at another moment
  }
  const Axis x = {power_of_ten_below(least_x), greatest_x, std::min(width - kMargin - 10, 60)};
  const Axis y = {least_y / 1.5, greatest_y, kHeight};

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

}  // namespace couplet::cli
