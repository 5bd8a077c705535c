#include <cmath>
#include <fmt/format.h>
#include <functional>

#include "cortado/kernels/reference/reference.h"

#include "tests/kernels/buffers.h"

namespace cortado::check {
namespace {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

constexpr double difference_step = 1e-4;
constexpr double relative_tolerance = 1e-3;
constexpr double smallest_scale = 1e-4;  // gradients below this are compared absolutely
constexpr double allowed_kinks = 0.05;   // share of elements

// The scalar whose gradient is checked: sum over outputs of gradient weight * output.
class Objective {
 public:
  Objective(const Task& task, KernelOf<double>& kernel, const CheckOptions& options)
      : data_(task, options), kernel_(kernel), buffers_(task, kernel, data_) {}

  double operator()() {
    for (size_t p = 0; p < data_.parameters.size(); ++p) buffers_.parameters[p].set(data_.parameters[p]);
    kernel_.forward(buffers_.arguments());
    double sum = 0;
    for (size_t i = 0; i < data_.output_gradients.size(); ++i) {
      const double* y = buffers_.outputs[i].data();
      for (double weight : data_.output_gradients[i]) sum += weight == 0 ? 0 : weight * *y, ++y;
    }
    return sum;
  }

  void backward(bool split) {
    (*this)();
    if (split) kernel_.backward_weights(buffers_.arguments());
    kernel_.backward(buffers_.arguments());
  }

  TaskBuffers<double>& buffers() { return buffers_; }
  TaskData<double>& data() { return data_; }

 private:
  TaskData<double> data_;
  KernelOf<double>& kernel_;
  TaskBuffers<double> buffers_;
};

// Differences of the objective when `element` moves, against `analytic`. `apply` hands a moved element over.
AssertionResult compare_element(Objective& objective, double& element, double analytic, int64_t& kinks,
                                const std::function<void()>& apply) {
  double original = element;
  auto at = [&](double value) {
    element = value;
    apply();
    return objective();
  };
  double above = at(original + difference_step), below = at(original - difference_step), here = at(original);
  double numeric = (above - below) / (2 * difference_step);
  double scale = std::max({std::abs(numeric), std::abs(analytic), smallest_scale});
  if (std::abs(numeric - analytic) <= relative_tolerance * scale) return AssertionSuccess();
  double disagreement = std::abs(above + below - 2 * here) / difference_step;
  if (disagreement > 10 * relative_tolerance * scale) {
    ++kinks;
    return AssertionSuccess();
  }
  return AssertionFailure() << fmt::format("is {}, finite differences give {}", analytic, numeric);
}

AssertionResult compare_tensor(Objective& objective, const std::string& what, std::vector<double>& values,
                               Buffer<double>& memory, const std::vector<double>& gradient) {
  int64_t kinks = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    auto result = compare_element(objective, values[i], gradient[i], kinks, [&] { memory.set(values); });
    if (!result)
      return AssertionFailure() << fmt::format("gradient of {} at offset {} {}", what, i, result.message());
  }
  if (kinks > std::max<double>(1, allowed_kinks * values.size())) {
    return AssertionFailure() << fmt::format("{} of {} elements of {} lie at kinks", kinks, values.size(),
                                             what);
  }
  return AssertionSuccess();
}

}  // namespace

AssertionResult gradients_match_differences(const Task& task, KernelOf<double>& kernel,
                                            const CheckOptions& options) {
  Objective objective(task, kernel, options);
  objective.backward(task.layer().splits_backward());
  TaskBuffers<double>& buffers = objective.buffers();
  std::vector<std::vector<double>> inputs, parameters;
  for (const auto& each : buffers.input_gradients) inputs.push_back(each.values());
  for (const auto& each : buffers.parameter_gradients) parameters.push_back(each.values());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!task.input_gradients[i]) continue;
    auto result = compare_tensor(objective, fmt::format("input {}", i), objective.data().inputs[i],
                                 buffers.inputs[i], inputs[i]);
    if (!result) return result;
  }
  for (size_t p = 0; p < parameters.size(); ++p) {
    if (!task.parameter_gradients[p]) continue;
    auto result = compare_tensor(objective, fmt::format("parameter {}", p), objective.data().parameters[p],
                                 buffers.parameters[p], parameters[p]);
    if (!result) return result;
  }
  return AssertionSuccess();
}

AssertionResult gradients_match_differences(const Task& task, const CheckOptions& options) {
  auto kernel = make_reference_kernel<double>(task);
  return gradients_match_differences(task, *kernel, options);
}

}  // namespace cortado::check
