// Rules 4 and 5: what the reference level's products mean, and that every level, tile and split gives its bits.

#include "kernels/weights_testing.h"

namespace couplet::kernels::testing {
namespace {

std::string shape(const KernelTable& level, int rows, const PackedMatrix& weights, bool two_planes) {
  return std::string(level.name) + ", " + name_of(weights.type) + ", " + std::to_string(rows) + " rows of " +
         std::to_string(weights.cols) + ", " + std::to_string(weights.rows) + " outputs" +
         (two_planes ? ", two planes" : "");
}

// Activations of mixed sizes; `spread` decades of scales between blocks.
void fill_activations(Activations& x, Random& random, float spread) {
  const int rows = x.view.num_rows, cols = x.view.cols;
  std::vector<float> values = random.floats(static_cast<std::size_t>(rows * cols));
  for (std::size_t block = 0; block < values.size(); block += 32) {
    const float factor = std::pow(10.0F, random.uniform(-spread, spread));
    for (std::size_t k = 0; k < 32; ++k) values[block + k] *= random.below(40) ? factor : 0.0F;
  }
  std::vector<std::uint8_t> poisoned(static_cast<std::size_t>(rows));
  reference_level().quantize(values.data(), cols, x.view, poisoned.data());
}

struct Product {  // of panels [first, first + count), in an array whose other outputs stay as they were
  Product(const KernelTable& level, const PackedMatrix& weights, int first, int count, const QuantizedRows& x,
          bool one_row)
      : stride(16 * weights.num_panels() + 5), out(static_cast<std::size_t>(x.num_rows * stride)) {
    Aligned<std::byte> scratch(level.scratch_bytes(weights.cols, 0));
    const auto function = one_row ? level.one_row : level.many_rows;
    function(weights, first, count, x, out.data(), stride, scratch.data());
  }
  int stride;
  Aligned<float> out;
};

class ProductTest : public ::testing::TestWithParam<WeightType> {
 protected:
  void expect_levels_equal(const PackedMatrix& weights, const Activations& x, bool two_planes) const {
    const int panels = weights.num_panels();
    for (const auto& [first, count] : std::initializer_list<std::pair<int, int>>{{0, panels}, {panels - 1, 1}, {1, 2}}) {
      if (first < 0 || first + count > panels) continue;
      const Product expected(reference_level(), weights, first, count, x.view, false);
      for (const KernelTable* level : all_levels()) {
        SCOPED_TRACE(shape(*level, x.view.num_rows, weights, two_planes) + ", panels from " + std::to_string(first));
        const Product got(*level, weights, first, count, x.view, false);
        ASSERT_TRUE(same_bits(got.out.data(), expected.out.data(), got.out.size()));
        const int row = x.view.num_rows / 2;
        const Product one(*level, weights, first, count, x.row(row), true);
        ASSERT_TRUE(same_bits(one.out.data(), expected.out.data() + row * expected.stride, one.out.size())) << "one row";
      }
    }
  }
};

TEST_P(ProductTest, EveryLevelGivesTheBitsOfTheReference) {
  Random random(11);
  for (const int blocks : {1, 2, 3, 7, 16, 35}) {
    if (blocks > 7 && block_values(GetParam()) > 32) continue;
    for (const int outputs : {16, 40, 80}) {
      const FileMatrix file = random_weights(GetParam(), outputs, blocks * block_values(GetParam()), random);
      const Packed packed(reference_level(), file);
      for (const int rows : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 25, 26, 30, 31, 64}) {
        if ((rows > 13 && blocks != 3) || (rows < 11 && blocks > 7)) continue;
        for (const bool two_planes : {false, true}) {
          Activations x(rows, file.cols, two_planes);
          fill_activations(x, random, 2);
          expect_levels_equal(packed.view, x, two_planes);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(ProductTest, EveryLevelGivesTheBitsOfTheReferenceAtTheEdges) {
  Random random(12);
  for (const Fill fill : {Fill::random, Fill::zeros, Fill::ones, Fill::sign_bits}) {
    for (const float spread : {0.0F, 20.0F}) {
      const FileMatrix file = random_weights(GetParam(), 30, 2 * block_values(GetParam()), random, fill, true);
      const Packed packed(reference_level(), file);
      for (const bool two_planes : {false, true}) {
        Activations x(7, file.cols, two_planes);
        fill_activations(x, random, spread);
        expect_levels_equal(packed.view, x, two_planes);
        // The greatest codes, all of one sign: the largest integer dot products.
        for (const int sign : {1, -1}) {
          std::vector<float> greatest(static_cast<std::size_t>(7 * file.cols), static_cast<float>(sign) * 3.0F);
          std::vector<std::uint8_t> poisoned(7);
          reference_level().quantize(greatest.data(), file.cols, x.view, poisoned.data());
          if (two_planes) {  // no finite row has both planes full; the product takes it all the same
            std::memset(x.lo.data(), sign * 127, x.lo.size());
            std::fill_n(x.sum_lo.data(), x.sum_lo.size(), static_cast<std::int16_t>(sign * 127 * 16));
          }
          expect_levels_equal(packed.view, x, two_planes);
        }
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(ProductTest, OneRowIsManyRows) {
  Random random(13);
  const FileMatrix file = random_weights(GetParam(), 48, 5 * block_values(GetParam()), random);
  const Packed packed(reference_level(), file);
  for (const bool two_planes : {false, true}) {
    for (const int rows : {2, 9, 37}) {
      Activations x(rows, file.cols, two_planes);
      fill_activations(x, random, 1);
      for (const KernelTable* level : all_levels()) {
        const Product many(*level, packed.view, 0, 3, x.view, false);
        for (int row = 0; row < rows; ++row) {
          const Product one(*level, packed.view, 0, 3, x.row(row), true);
          ASSERT_TRUE(same_bits(one.out.data(), many.out.data() + row * many.stride, one.out.size()))
              << shape(*level, rows, packed.view, two_planes) << ", row " << row;
        }
      }
    }
  }
}

// The meaning: the dot product of dequantized weights with the activations that the codes stand for, in double. Each of
// at most three roundings a sub-block of 16 loses 2^-24 of what has been summed so far.
TEST_P(ProductTest, ReferenceIsTheDotProductOfTheDequantizedValues) {
  Random random(14);
  const FileMatrix file = random_weights(GetParam(), 19, 3 * block_values(GetParam()), random);
  const Packed packed(reference_level(), file);
  const double tolerance = 4.0 * file.cols / 16 * 0x1p-24;
  for (const bool two_planes : {false, true}) {
    Activations x(3, file.cols, two_planes);
    fill_activations(x, random, 0.3F);
    const Product got(reference_level(), packed.view, 0, 2, x.view, false);
    for (int row = 0; row < 3; ++row) {
      const QuantizedRows codes = x.row(row);
      for (int output = 0; output < 32; ++output) {
        double expected = 0, magnitude = 0;
        for (int k = 0; k < file.cols && output < 19; ++k) {
          const double code = two_planes ? 254 * codes.hi[k] + codes.lo[k] : codes.hi[k];
          const double value = code * codes.scale[k / 32];
          const Weight w = file.at(output, k);
          expected += w.value() * value;
          magnitude += (std::abs(w.scale * w.code) + std::abs(w.minimum)) * std::abs(value);
        }
        ASSERT_NEAR(got.out[static_cast<std::size_t>(row * got.stride + output)], expected, magnitude * tolerance)
            << "row " << row << ", output " << output << (two_planes ? ", two planes" : "");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ProductTest, ::testing::ValuesIn(kQuantizedTypes),
                         [](const auto& info) { return std::string(name_of(info.param)); });

// Unquantized weights: finite values of every size.
FileMatrix random_float_weights(WeightType type, int rows, int cols, Random& random) {
  FileMatrix file = {type, rows, cols, {}};
  file.bytes.resize(static_cast<std::size_t>(rows) * file.stride());
  const std::size_t width = row_bytes(type, 1);
  for (std::size_t at = 0; at < file.bytes.size(); at += width) {
    const float value = random.uniform(-1, 1) * std::pow(10.0F, random.uniform(-4, 2));
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (type == WeightType::bf16) bits >>= 16;
    if (type == WeightType::f16) bits = random_half(random, random.below(8) == 0);
    std::memcpy(file.bytes.data() + at, &bits, width);
  }
  return file;
}

double float_weight(const FileMatrix& file, int r, int k) {
  std::uint32_t bits = 0;
  const std::size_t width = row_bytes(file.type, 1);
  std::memcpy(&bits, file.row(r) + width * std::size_t(k), width);
  if (file.type == WeightType::f16) return half_value(bits);
  if (file.type == WeightType::bf16) bits <<= 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

struct FloatProduct {
  FloatProduct(const KernelTable& level, const PackedMatrix& weights, int first, int count, const float* x, int rows)
      : stride(16 * weights.num_panels() + 3), out(static_cast<std::size_t>(rows * stride)) {
    level.float_rows(weights, first, count, x, weights.cols + 2, rows, out.data(), stride);
  }
  int stride;
  Aligned<float> out;
};

TEST(FloatProductTest, EveryLevelGivesTheBitsOfTheReference) {
  Random random(15);
  for (const WeightType type : kFloatTypes) {
    for (const int cols : {1, 15, 17, 33, 64}) {
      for (const int outputs : {7, 32, 80, 130}) {
        const FileMatrix file = random_float_weights(type, outputs, cols, random);
        const Packed packed(reference_level(), file);
        for (const int rows : {1, 2, 3, 4, 5, 6, 7, 13, 64}) {
          const std::vector<float> x = random.floats(static_cast<std::size_t>(rows * (cols + 2)), -5, 5);
          for (const int first : {0, packed.view.num_panels() / 2}) {
            const int count = packed.view.num_panels() - first;
            const FloatProduct expected(reference_level(), packed.view, first, count, x.data(), rows);
            for (const KernelTable* level : all_levels()) {
              const FloatProduct got(*level, packed.view, first, count, x.data(), rows);
              ASSERT_TRUE(same_bits(got.out.data(), expected.out.data(), got.out.size()))
                  << shape(*level, rows, packed.view, false) << ", panels from " << first;
            }
          }
        }
      }
    }
  }
}

TEST(FloatProductTest, ReferenceIsTheDotProduct) {
  Random random(16);
  for (const WeightType type : kFloatTypes) {
    const FileMatrix file = random_float_weights(type, 19, 45, random);
    const Packed packed(reference_level(), file);
    const std::vector<float> x = random.floats(2 * 47, -5, 5);
    const FloatProduct got(reference_level(), packed.view, 0, 2, x.data(), 2);
    for (int row = 0; row < 2; ++row) {
      for (int output = 0; output < 32; ++output) {
        double expected = 0, magnitude = 0;
        for (int k = 0; k < 45 && output < 19; ++k) {
          const double term = float_weight(file, output, k) * static_cast<double>(x[std::size_t(row * 47 + k)]);
          expected += term;
          magnitude += std::abs(term);
        }
        ASSERT_NEAR(got.out[static_cast<std::size_t>(row * got.stride + output)], expected, magnitude * 45 * 0x1p-24)
            << name_of(type) << " row " << row << ", output " << output;
      }
    }
  }
}

}  // namespace
}  // namespace couplet::kernels::testing
