// Run by an MPI launcher: every rank runs all checks; the first fault of any rank is the program's.
#include "cortado/comm/mpi.h"

#include <gtest/gtest.h>

#include "cortado/comm/host_share.h"

#include "tests/comm/checks.h"

namespace cortado {
namespace {

std::unique_ptr<Communicator> ranks;

class MpiRanks : public testing::TestWithParam<size_t> {};

TEST_P(MpiRanks, Check) { communicator_checks()[GetParam()].run(*ranks); }

INSTANTIATE_TEST_SUITE_P(Of, MpiRanks, testing::Range<size_t>(0, communicator_checks().size()),
                         [](const auto& info) { return communicator_checks()[info.param].name; });

TEST(Mpi, ProcessorsAreShared) {
  int mine = processors_of_rank(*ranks);
  EXPECT_GE(mine, 1);
  EXPECT_LE(mine, std::max(1, usable_processors() / ranks->size()));
}

}  // namespace
}  // namespace cortado

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  cortado::ranks = cortado::make_mpi_communicator();
  int result = RUN_ALL_TESTS();
  cortado::ranks.reset();
  return result;
}
