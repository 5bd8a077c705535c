// Run by an MPI launcher: every rank runs all checks, with --apart as if each were on a host of its own, with
// --late one ends long after the other; the first fault of any rank is the program's.
#include "cortado/comm/mpi.h"

#include <chrono>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string_view>
#include <thread>

#include "cortado/comm/processors.h"

#include "tests/comm/checks.h"

namespace cortado {
namespace {

std::unique_ptr<Communicator> ranks;

class MpiRanks : public testing::TestWithParam<size_t> {};

TEST_P(MpiRanks, Check) { communicator_checks()[GetParam()].run(*ranks); }

INSTANTIATE_TEST_SUITE_P(Of, MpiRanks, testing::Range<size_t>(0, communicator_checks().size()),
                         [](const auto& info) { return communicator_checks()[info.param].name; });

TEST(Mpi, ProcessorsAreShared) {
  const int cores = Topology::of_process().cores();
  const ProcessorShare mine = processors_of_rank(*ranks);
  const double threads = ranks->sum(mine.threads);
  EXPECT_EQ(threads, std::max(cores, ranks->size()));
  EXPECT_EQ(mine.processors.empty(), ranks->size() == 1 || ranks->size() > cores);
}

}  // namespace
}  // namespace cortado

int main(int count, char** words) {
  testing::InitGoogleTest(&count, words);
  const std::string_view word = count > 1 ? words[1] : "";
  cortado::ranks = cortado::make_mpi_communicator(word == "--apart", [] { std::_Exit(3); });
  int result = RUN_ALL_TESTS();
  // A rank that comes so late to the end of MPI is not stuck.
  if (word == "--late" && cortado::ranks->rank() == 1)
    std::this_thread::sleep_for(std::chrono::seconds(cortado::seconds_to_end_mpi + 2));
  cortado::ranks.reset();
  return result;
}
