// Stand-ins for the levels that few machines run: the same sources with the other encoding of AVX-VNNI's instructions, and
// with AMX tiles in plain C++ (docs/adr/0007). From here on every test of this program that goes through all_levels()
// compares them, too. They need AVX-512 VNNI.

#include "base/cpu_features.h"
#include "kernels/kernel_testing.h"

namespace couplet::kernels {
namespace avx2_vnni_evex {
const KernelTable& table();
}
namespace amx_emulated {
const KernelTable& table();
}

namespace testing {
namespace {

const bool kAdded = [] {
  if (cpu_features().avx512) stand_ins() = {&avx2_vnni_evex::table(), &amx_emulated::table()};
  return true;
}();

TEST(StandInsTest, AreAmongTheLevels) {
  ASSERT_TRUE(kAdded);
  if (stand_ins().empty()) GTEST_SKIP() << "without AVX-512 VNNI, avx2_vnni and amx are not proved here";
  EXPECT_STREQ(all_levels()[0]->name, "avx2_vnni_evex");
  EXPECT_STREQ(all_levels()[1]->name, "amx_emulated");
  EXPECT_STREQ(all_levels().back()->name, "reference");
}

}  // namespace
}  // namespace testing
}  // namespace couplet::kernels
