// What a rank holds: slices of weights, gradients and solver state, tiles and halos of tensors.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cortado/layers/batch_norm.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/softmax_loss.h"
#include "cortado/program/held_memory.h"
#include "cortado/train/optimizer.h"

#include "tests/exec/job_run.h"

namespace cortado {
namespace {

LayerPtr convolution(int64_t filters, int64_t kernel) {
  ConvolutionOptions options{
      .num_output = filters, .bias_term = false, .kernel = {kernel}, .pad = {kernel / 2}};
  options.weight_filler.type = Filler::Type::msra;
  return std::make_shared<Convolution>(options);
}
LayerPtr relu() { return std::make_shared<Pointwise>(ReluOptions{}); }
LayerPtr product(int64_t outputs) {
  InnerProductOptions options{.num_output = outputs};
  return std::make_shared<InnerProduct>(options);
}

// Calls look() on every rank, at the same time.
void on_ranks(const testing::CutNet& net, int ranks,
              const std::function<void(Communicator&, Executor&, ParameterStore&)>& look) {
  const Network network = net.build();
  LocalJob job(ranks);
  job.run([&](Communicator& communicator) {
    ParameterStore store;
    Executor executor(
        network,
        compile(network, {.strategies = net.strategies(), .ranks = ranks, .rank = communicator.rank()}),
        store, {}, {.communicator = &communicator});
    look(communicator, executor, store);
  });
}

TEST(Memory, UnderChannelCutsARankHoldsItsSlicesOnly) {
  for (const Degrees& grid :
       {Degrees{.c = 2}, Degrees{.r = 2}, Degrees{.c = 2, .r = 2}, Degrees{.n = 2, .r = 2}}) {
    SCOPED_TRACE(grid.text());
    testing::CutNet net({Shape{2, 64, 8, 8}, Shape{2, 64, 8, 8}});
    const ParallelConfig cut = testing::on_all(grid);
    ParallelConfig pointwise = cut;
    pointwise.degrees = {.n = grid.n, .c = grid.c * grid.r};
    net.add("a", convolution(128, 3), "data0", cut).add("a_relu", relu(), {"a"}, {"a"}, pointwise);
    net.add("b", convolution(64, 3), "a", cut);
    net.add("loss", std::make_shared<EuclideanLoss>(), {"b", "data1"}, {"loss"}, pointwise);
    const int64_t whole = int64_t{2} * 128 * 64 * 9, slice = whole / (grid.c * grid.r);
    on_ranks(net, grid.product(), [&](Communicator& communicator, Executor& executor, ParameterStore& store) {
      SolverOptions solver;
      solver.update.momentum = 0.9;
      Optimizer optimizer(solver, store, parameter_cut_of(executor, &communicator));
      int64_t weights = 0, history = 0;
      for (ParameterIndex p : indices(executor.parameter_entries())) {
        const EntryIndex entry = executor.parameter_entries()[p];
        weights += store.entries()[entry].elements;
        EXPECT_NE(optimizer.history(entry, 0), nullptr);
        history += optimizer.cut().updates(p).size();
      }
      EXPECT_EQ(weights, slice);
      EXPECT_EQ(history, slice);
    });
  }
}

// 3x3 convolutions over 32x32: of every tensor a rank has its tile of 16x16, and what a convolution reads is
// a row and a column more.
TEST(Memory, UnderCutsOfSpaceARankHoldsItsTilesAndHalos) {
  auto net_of = [](const Degrees& grid) {
    testing::CutNet net({Shape{2, 16, 32, 32}, Shape{2, 16, 32, 32}});
    const ParallelConfig cut = testing::on_all(grid);
    std::string blob = "data0";
    for (int i = 0; i < 6; ++i) {
      const std::string name = fmt::format("conv{}", i);
      net.add(name, convolution(16, 3), blob, cut)
          .add(name + "_bn", std::make_shared<BatchNorm>(BatchNormOptions{}), name, cut);
      blob = name + "_bn";
    }
    net.add("loss", std::make_shared<EuclideanLoss>(), {blob, "data1"}, {"loss"}, cut);
    return net;
  };
  int64_t alone = 0;
  on_ranks(net_of({}), 1,
           [&](Communicator&, Executor& executor, ParameterStore&) { alone = executor.arena().count; });
  const Shape tile{2, 16, 16, 16}, with_halo{2, 16, 17, 17};
  on_ranks(net_of({.h = 2, .w = 2}), 4, [&](Communicator&, Executor& executor, ParameterStore&) {
    for (const Buffer& buffer : executor.program().buffers) {
      if (buffer.kind != Buffer::Kind::activation && buffer.kind != Buffer::Kind::gradient) continue;
      const bool read = buffer.name.find("needed") != std::string::npos;
      EXPECT_LE(buffer.size.count, bytes_of(read ? with_halo : tile, ElementType::f32).count) << buffer.name;
    }
    // A quarter, and halos of 17 * 17 where there were 16 * 16 places. Filters that kernels transform are no
    // less. While the gradient of a layer's inputs travels, it lies where it leaves and where it arrives, and
    // that of the layer's outputs is still needed.
    const int64_t limit = static_cast<int64_t>(static_cast<double>(alone) / 4 * 17 * 17 / (16 * 16) * 1.15) +
                          3 * bytes_of(with_halo, ElementType::f32).count;
    EXPECT_LE(executor.arena().count, limit);
  });
}

// VGG-A on images of 64x64.
testing::CutNet vgg_a(int64_t samples, const Degrees& grid) {
  const ParallelConfig cut = testing::on_all(grid);
  testing::CutNet net({Shape{samples, 3, 64, 64}, Shape{samples}});
  std::string blob = "data0";
  int layers = 0;
  auto add = [&](LayerPtr layer, bool with_relu) {
    const std::string name = fmt::format("x{}", ++layers);
    net.add(name, std::move(layer), blob, cut);
    if (with_relu) net.add(name + "_relu", relu(), {name}, {name}, cut);
    blob = name;
  };
  for (const std::vector<int64_t>& stage :
       std::vector<std::vector<int64_t>>{{64}, {128}, {256, 256}, {512, 512}, {512, 512}}) {
    for (int64_t filters : stage) add(convolution(filters, 3), true);
    add(std::make_shared<Pooling>(PoolingOptions{.kernel = {2}, .stride = {2}}), false);
  }
  add(product(512), true);
  add(product(512), true);
  add(product(10), false);
  net.add("loss", std::make_shared<SoftmaxLoss>(SoftmaxLossOptions{}), {blob, "data1"}, {"loss"}, cut);
  return net;
}

// Communication steps keep no memory of the layers: two ranks hold what one of half the batch does.
TEST(Memory, ARankUnderDataHoldsWhatOneOfItsShareDoes) {
  int64_t alone = 0;
  on_ranks(vgg_a(4, {}), 1,
           [&](Communicator&, Executor& executor, ParameterStore&) { alone = executor.arena().count; });
  on_ranks(vgg_a(8, {.n = 2}), 2, [&](Communicator&, Executor& executor, ParameterStore&) {
    EXPECT_LE(executor.arena().count, alone + alone / 100) << executor.program().text(executor.network());
  });
}

// held_memory() says of a Program what its Executor, its parameters and the solver take.
TEST(Memory, IsWhatItsProgramSays) {
  for (const auto solver_type : {UpdateOptions::Solver::sgd, UpdateOptions::Solver::adam})
    for (const int iter_size : {1, 2})
      for (const Degrees& grid : {Degrees{}, Degrees{.n = 2}, Degrees{.c = 2}, Degrees{.n = 2, .r = 2}}) {
        SCOPED_TRACE(fmt::format("{}, iter_size {}", grid.text(), iter_size));
        testing::CutNet net({Shape{4, 3, 8, 8}, Shape{4, 20, 8, 8}});
        const ParallelConfig cut = testing::on_all(grid);
        ParallelConfig pointwise = cut;
        pointwise.degrees = {.n = grid.n, .c = grid.c * grid.r};
        ParallelConfig first = cut;
        first.degrees = {.n = grid.product()};
        net.add("a", convolution(36, 3), "data0", first);
        net.add("a_relu", relu(), {"a"}, {"a"}, pointwise).add("b", convolution(20, 3), "a", cut);
        net.add("loss", std::make_shared<EuclideanLoss>(), {"b", "data1"}, {"loss"}, pointwise);
        const Network network = net.build();
        on_ranks(net, grid.product(),
                 [&](Communicator& communicator, Executor& executor, ParameterStore& store) {
                   SolverOptions solver;
                   solver.update.solver = solver_type;
                   solver.iter_size = iter_size;
                   const Optimizer optimizer(solver, store, parameter_cut_of(executor, &communicator));
                   const auto lines = [](int64_t elements) { return (elements * 4 + 63) / 64 * 64; };
                   HeldMemory real{.arena = executor.arena()};
                   for (ParameterIndex p : indices(executor.parameter_entries())) {
                     const ParameterStore::Entry& entry = store.entries()[executor.parameter_entries()[p]];
                     real.parameters += {lines(entry.elements)};
                     if (entry.gradient) real.gradients += {lines(entry.elements)};
                     real.history +=
                         {(optimizer.rounds() + iter_size - 1) * lines(optimizer.cut().updates(p).size())};
                   }
                   const HeldMemory held = held_memory(executor.program(), network, history_tensors(solver));
                   EXPECT_EQ(held.arena, real.arena);
                   EXPECT_EQ(held.parameters, real.parameters);
                   EXPECT_EQ(held.gradients, real.gradients);
                   EXPECT_EQ(held.history, real.history);
                   EXPECT_GT(held.total(), held.arena);
                 });
      }
}

}  // namespace
}  // namespace cortado
