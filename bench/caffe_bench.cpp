// BVLC Caffe's algorithm for the convolutions of caffenet (caffe_convolution.h) beside ours, milliseconds
// each:
//   caffe_bench [BATCH [REPETITIONS]]
// It is checked first that all compute the same. It leaves out all that is no convolution: Caffe's other
// layers, its solver, its reading of data.
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <string>

#include "cortado/base/parallel_for.h"
#include "cortado/kernels/lowering/implicit_gemm.h"
#include "cortado/kernels/lowering/make_lowering.h"
#include "cortado/kernels/reference/reference.h"

#include "bench/caffe_convolution.h"
#include "bench/match.h"
#include "bench/square_convolution.h"

namespace cortado {
namespace {

// Caffe computes no gradient of the data.
bool wants_input_gradient(const SquareConvolution& layer) { return layer.name != "conv1"; }

// Numbers between -0.5 and 0.5.
std::vector<float> numbers(int64_t count, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<float>(seed >> 8) / (1 << 24) - 0.5f;
  }
  return values;
}

// A tensor of N x C x places with its channels last, or the other way round.
std::vector<float> turned(const std::vector<float>& from, int64_t batch, int64_t channels, int64_t places,
                          bool to_last) {
  std::vector<float> to(from.size());
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < places; ++p) {
        const auto first = static_cast<size_t>((n * channels + c) * places + p);
        const auto last = static_cast<size_t>((n * places + p) * channels + c);
        to_last ? to[last] = from[first] : to[first] = from[last];
      }
  return to;
}

// The largest difference over the largest value.
double difference(const std::vector<float>& one, const std::vector<float>& other) {
  double most = 0, largest = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(one[i]) - other[i]));
    largest = std::max(largest, std::abs(static_cast<double>(other[i])));
  }
  return most / largest;
}

// The memory of one convolution and its gradients, as Caffe has it.
struct Tensors {
  explicit Tensors(const CaffeConvolution& of, const SquareConvolution& sizes)
      : x(numbers(sizes.batch * of.input_elements(), 1)),
        dy(numbers(sizes.batch * of.output_elements(), 2)),
        weight(numbers(of.weight_elements(), 3)),
        bias(numbers(sizes.outputs, 4)),
        y(dy.size()),
        dx(x.size()),
        dweight(weight.size()),
        dbias(bias.size()) {}
  std::vector<float> x, dy, weight, bias, y, dx, dweight, dbias;
};

// How far Caffe's results are from those of our reference kernel, the most of all passes.
double difference_of(const SquareConvolution& sizes) {
  CaffeConvolution caffe(sizes);
  Tensors ours(caffe, sizes), theirs(caffe, sizes);
  caffe.forward(theirs.x.data(), theirs.weight.data(), theirs.bias.data(), theirs.y.data());
  caffe.backward(theirs.x.data(), theirs.weight.data(), theirs.dy.data(), theirs.dweight.data(),
                 theirs.dbias.data(), theirs.dx.data());
  const int64_t in = sizes.extent * sizes.extent, out = sizes.out() * sizes.out();
  ours.x = turned(ours.x, sizes.batch, sizes.channels, in, true);
  ours.dy = turned(ours.dy, sizes.batch, sizes.outputs, out, true);
  const auto kernel = make_reference_kernel<float>(task_of(sizes));
  Arguments arguments;
  arguments.inputs = {ours.x.data()};
  arguments.outputs = {ours.y.data()};
  arguments.output_gradients = {ours.dy.data()};
  arguments.input_gradients = {ours.dx.data()};
  arguments.parameters = {ours.weight.data(), ours.bias.data()};
  arguments.parameter_gradients = {ours.dweight.data(), ours.dbias.data()};
  std::vector<std::byte> scratch(static_cast<size_t>(kernel->scratch_bytes().count) + 1);
  arguments.scratch = scratch.data();
  kernel->forward(arguments);
  kernel->backward_weights(arguments);
  kernel->backward(arguments);
  ours.y = turned(ours.y, sizes.batch, sizes.outputs, out, false);
  ours.dx = turned(ours.dx, sizes.batch, sizes.channels, in, false);
  return std::max({difference(theirs.y, ours.y), difference(theirs.dx, ours.dx),
                   difference(theirs.dweight, ours.dweight), difference(theirs.dbias, ours.dbias)});
}

// Convolutions with windows, strides, borders and groups of every kind, and those of caffenet.
bool computes_the_same() {
  std::vector<SquareConvolution> all{{"", 2, 4, 6, 9, 3, 1, 1, 1},
                                     {"", 2, 4, 6, 9, 1, 1, 0, 2},
                                     {"", 3, 6, 4, 10, 5, 2, 2, 2},
                                     {"", 1, 3, 2, 7, 3, 3, 0, 1}};
  for (const SquareConvolution& layer : convolutions_of_caffenet(1)) all.push_back(layer);
  double most = 0;
  for (const SquareConvolution& sizes : all) most = std::max(most, difference_of(sizes));
  constexpr double rounding = 1e-4;
  fmt::print("largest difference from the reference kernel, of the largest value: {:.1e}\n", most);
  return most < rounding;
}

// Seconds of Caffe's passes, the best of several.
struct Passes {
  double forward, backward;
};
Passes passes_of_caffe(const SquareConvolution& layer, int repetitions) {
  CaffeConvolution caffe(layer);
  Tensors t(caffe, layer);
  Passes best{1e300, 1e300};
  for (int i = 0; i < repetitions; ++i) {
    best.forward =
        std::min(best.forward,
                 seconds_of([&] { caffe.forward(t.x.data(), t.weight.data(), t.bias.data(), t.y.data()); }));
    best.backward =
        std::min(best.backward, seconds_of([&] {
                   caffe.backward(t.x.data(), t.weight.data(), t.dy.data(), t.dweight.data(), t.dbias.data(),
                                  wants_input_gradient(layer) ? t.dx.data() : nullptr);
                 }));
  }
  return best;
}

void bench(const SquareConvolution& layer, int repetitions) {
  const Passes caffe = passes_of_caffe(layer, repetitions);
  const Task task = task_of(layer);
  std::vector<KernelOffer> offers;
  offers.push_back(make_lowering(task, lowering::LoweringType::one));
  offers.push_back(make_implicit_gemm(task));
  Match match(task, std::move(offers));
  const std::vector<double> forward = match.times(&Kernel::forward, repetitions);
  std::vector<double> backward = match.times(&Kernel::backward_weights, repetitions);
  if (wants_input_gradient(layer)) {
    const std::vector<double> of_inputs = match.times(&Kernel::backward, repetitions);
    for (size_t i = 0; i < backward.size(); ++i) backward[i] += of_inputs[i];
  }
  const double all = caffe.forward + caffe.backward;
  fmt::print("| {} | {} | {:.1f} | {:.1f} |", layer.name, layer.batch, 1e3 * caffe.forward,
             1e3 * caffe.backward);
  for (size_t i = 0; i < forward.size(); ++i)
    match.offer(i).kernel ? fmt::print(" {:.1f} | {:.1f} | {:.2f} |", 1e3 * forward[i], 1e3 * backward[i],
                                       all / (forward[i] + backward[i]))
                          : fmt::print(" | | |");
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace cortado

int main(int count, char** arguments) {
  const int batch = count > 1 ? std::atoi(arguments[1]) : 64,
            repetitions = count > 2 ? std::atoi(arguments[2]) : 3;
  if (batch < 1 || repetitions < 1) {
    fmt::print(stderr, "caffe_bench: [BATCH [REPETITIONS]], both 1 or more\n");
    return 2;
  }
  if (!cortado::computes_the_same()) return 1;
  fmt::print(
      "{} threads\n\n| layer | images | Caffe forward, ms | Caffe backward, ms | lowering of the batch "
      "forward, ms | "
      "its backward, ms | times Caffe | implicit forward, ms | implicit backward, ms | implicit times Caffe "
      "|\n"
      "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
      cortado::compute_threads());
  for (const auto& layer : cortado::convolutions_of_caffenet(batch)) cortado::bench(layer, repetitions);
}
