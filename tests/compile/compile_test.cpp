#include "cortado/compile/compile.h"

#include <gtest/gtest.h>

#include "cortado/base/error.h"
#include "cortado/kernels/instruction_set.h"
#include "cortado/kernels/select.h"

#include "tests/compile/program_text.h"
#include "tests/plan/zoo.h"

namespace cortado {
namespace {

using testing::whole_text;

Network lenet() { return testing::zoo_net("lenet", 8, {1, 28, 28}); }

CompileOptions on(const Network& net, const std::string& strategy, int ranks, int rank = 0) {
  const Strategy found = load_strategy(strategy, net, ranks);
  return {.strategies = resolve(found, net, ranks, strategy),
          .schedule = found.schedule,
          .ranks = ranks,
          .rank = rank};
}

TEST(Compile, GivesEveryWorkItsKernelAndEveryParameterItsOrder) {
  const Network net = lenet();
  const Compiled compiled = compile(net);
  ASSERT_EQ(compiled.formats.size(), net.parameters().size());
  for (const Work& work : compiled.program.works) {
    if (work.kind != Work::Kind::compute) continue;
    ASSERT_GE(work.facts.kernel, 0);
    const Kernel& kernel = *compiled.kernels.at(static_cast<size_t>(work.facts.kernel)).kernel;
    EXPECT_EQ(work.facts.saved, kernel.saved_bytes());
    for (size_t p = 0; p < work.parameters.size(); ++p)
      EXPECT_EQ(compiled.formats[work.parameters[p]], kernel.parameter_format(static_cast<int>(p)));
  }
}

TEST(Compile, TakesTheKernelsThatAreChosen) {
  const Network net = lenet();
  const auto names = [&](const KernelChoice& choice) {
    std::string text;
    for (const Selection& kernel : compile(net, {.kernels = choice}).kernels)
      text += kernel.implementation + " ";
    return text;
  };
  EXPECT_EQ(names({.kernels = "reference"}).find("implicit-gemm"), std::string::npos);
  EXPECT_NE(names({.kernels = "implicit-gemm"}).find("implicit-gemm"), std::string::npos);
  const auto of_task = [](const Task& task) {
    return task.layer().type() == "Convolution" ? "lowering-1" : "";
  };
  EXPECT_NE(names({.kernels = "reference", .of_task = of_task}).find("lowering-1"), std::string::npos);
  EXPECT_THROW(compile(net, {.kernels = {.kernels = "no such kernels"}}), UserError);
}

// A profile is asked once for a problem, whatever the ranks, and knows that problems differ.
TEST(Compile, ProgramsOfAJobShareTheirPlacement) {
  const Network net = lenet();
  KernelProfile here = KernelProfile::here();
  const std::vector<Program> programs = compile_job(net, on(net, "model", 4), here);
  ASSERT_EQ(programs.size(), 4u);
  for (int rank = 0; rank < 4; ++rank) {
    const Program& program = programs[static_cast<size_t>(rank)];
    EXPECT_EQ(program.rank, rank);
    EXPECT_EQ(program.placement, programs[0].placement);
    EXPECT_EQ(whole_text(program, net), whole_text(compile(net, on(net, "model", 4, rank)).program, net));
  }
}

// Kernels that nobody knows are taken for such as run every chain in one.
TEST(Compile, AnUnknownProfileIsAGuess) {
  const Network net = lenet();
  KernelProfile unknown = KernelProfile::unknown();
  const Program guessed = compile_job(net, {}, unknown)[0];
  const Program run = compile(net, {.kernels = {.kernels = "reference"}}).program;
  EXPECT_LT(guessed.works.size(), run.works.size());
  EXPECT_NE(whole_text(guessed, net), whole_text(run, net));
}

TEST(Compile, KnowsTheKernelsOfMachinesOfItsInstructionSet) {
  const Network net = lenet();
  KernelProfile same = KernelProfile::compiled_for(std::string(kernel_instruction_set()));
  EXPECT_FALSE(same.guess());
  EXPECT_EQ(whole_text(compile_job(net, {}, same)[0], net), whole_text(compile(net).program, net));
  EXPECT_TRUE(KernelProfile::compiled_for("altivec").guess());
  EXPECT_TRUE(KernelProfile::compiled_for("").guess());
}

}  // namespace
}  // namespace cortado
