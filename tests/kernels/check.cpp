#include "tests/kernels/check.h"

#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "cortado/kernels/reference/reference.h"

#include "tests/kernels/buffers.h"

namespace cortado::check {
namespace {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

// Results of one run, parameters and their gradients in canonical order.
struct Results {
  std::vector<std::vector<float>> outputs, parameters, input_gradients, parameter_gradients;
};

AssertionResult close(const std::string& what, const std::vector<float>& expected,
                      const std::vector<float>& actual, double tolerance) {
  double squares = 0;
  for (float value : expected) squares += static_cast<double>(value) * value;
  double typical = expected.empty() ? 0 : std::sqrt(squares / expected.size());
  int64_t wrong = 0, worst = 0;
  double worst_excess = -1;
  for (size_t i = 0; i < expected.size(); ++i) {
    double difference = std::abs(static_cast<double>(actual[i]) - expected[i]);
    double allowed = tolerance * std::max<double>(std::abs(expected[i]), typical);
    if (difference <= allowed) continue;
    ++wrong;
    double excess = std::isnan(difference) ? HUGE_VAL : difference;
    if (excess > worst_excess) worst_excess = excess, worst = static_cast<int64_t>(i);
  }
  if (wrong == 0) return AssertionSuccess();
  return AssertionFailure() << fmt::format(
             "{}: {} of {} elements differ, worst at offset {}: {} instead of {} (typical {})", what, wrong,
             expected.size(), worst, actual[worst], expected[worst], typical);
}

AssertionResult close(const std::string& what, const std::vector<std::vector<float>>& expected,
                      const std::vector<std::vector<float>>& actual, double tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (auto result = close(fmt::format("{} {}", what, i), expected[i], actual[i], tolerance); !result)
      return result;
  }
  return AssertionSuccess();
}

AssertionResult close(const Results& expected, const Results& actual, double tolerance) {
  if (auto r = close("output", expected.outputs, actual.outputs, tolerance); !r) return r;
  if (auto r = close("parameter after forward", expected.parameters, actual.parameters, tolerance); !r)
    return r;
  if (auto r =
          close("gradient of parameter", expected.parameter_gradients, actual.parameter_gradients, tolerance);
      !r) {
    return r;
  }
  return close("gradient of input", expected.input_gradients, actual.input_gradients, tolerance);
}

// A kernel with the memory of its runs; parameters lie in the kernel's own formats.
class KernelRun {
 public:
  KernelRun(const Task& task, Kernel& kernel, const TaskData<float>& data)
      : task_(task), kernel_(kernel), data_(data), buffers_(task, kernel, data) {
    for (size_t p = 0; p < data.parameters.size(); ++p) {
      formats_.push_back(kernel.parameter_format(static_cast<int>(p)));
      int64_t elements =
          formats_[p].elements > 0 ? formats_[p].elements : static_cast<int64_t>(data.parameters[p].size());
      buffers_.parameters[p] = Buffer<float>(elements);
      buffers_.parameter_gradients[p] = Buffer<float>(elements);
    }
  }

  // Forward and, where the task has one, the backward pass. `shared`: output 0 uses the memory of input 0,
  // the gradient of input 0 that of output 0.
  AssertionResult run(Results& results, bool shared = false, bool input_gradients_first = false) {
    reset();
    Arguments forward = forward_arguments(), backward = buffers_.arguments();
    backward.input_gradients_first = input_gradients_first;
    if (shared) share(forward), share(backward);
    if (kernel_.passes_output_gradient()) pass_output_gradient(backward);
    kernel_.forward(forward);
    results.outputs = outputs_of(forward);
    results.parameters = canonical_parameters();
    if (task_.has_backward()) {
      hide_what_backward_must_not_read(shared);
      const bool split = task_.layer().splits_backward();
      if (split && !input_gradients_first) kernel_.backward_weights(backward);
      buffers_.scratch.scramble();
      kernel_.backward(backward);
      buffers_.scratch.scramble();
      if (split && input_gradients_first) kernel_.backward_weights(backward);
      if (auto result = output_gradients_intact(shared); !result) return result;
      if (auto result = collect_gradients(results, backward); !result) return result;
    }
    return intact();
  }

  bool finite_outputs() {
    reset();
    kernel_.forward(forward_arguments());
    return finite(buffers_.outputs);
  }
  bool finite_gradients() {
    if (!finite_outputs()) return false;
    Arguments backward = buffers_.arguments();
    if (kernel_.passes_output_gradient()) pass_output_gradient(backward);
    if (task_.layer().splits_backward()) kernel_.backward_weights(backward);
    kernel_.backward(backward);
    if (kernel_.passes_output_gradient()) return finite(buffers_.output_gradients);
    return finite(buffers_.input_gradients, task_.input_gradients) &&
           finite(buffers_.parameter_gradients, task_.parameter_gradients);
  }

 private:
  static bool finite(const std::vector<Buffer<float>>& buffers, const std::vector<bool>& which = {}) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (!which.empty() && !which[i]) continue;
      for (float value : buffers[i].values())
        if (!std::isfinite(value)) return false;
    }
    return true;
  }

  // Only a kernel that says so may write into the output gradients.
  AssertionResult output_gradients_intact(bool shared) const {
    if (shared || kernel_.overwrites_output_gradients()) return AssertionSuccess();
    for (size_t i = 0; i < data_.output_gradients.size(); ++i) {
      const auto& given = data_.output_gradients[i];
      if (!std::equal(given.begin(), given.end(), buffers_.output_gradients[i].data())) {
        return AssertionFailure() << "the kernel overwrites output gradient " << i << " without saying so";
      }
    }
    return AssertionSuccess();
  }

  void reset() {
    for (size_t i = 0; i < data_.inputs.size(); ++i) buffers_.inputs[i].set(data_.inputs[i]);
    for (size_t i = 0; i < buffers_.outputs.size(); ++i) {
      buffers_.outputs[i].scramble();
      buffers_.output_gradients[i].set(data_.output_gradients[i]);
    }
    for (auto& each : buffers_.input_gradients) each.scramble();
    for (auto& each : buffers_.parameter_gradients) each.scramble();
    for (size_t p = 0; p < formats_.size(); ++p)
      to_own(p, data_.parameters[p].data(), buffers_.parameters[p]);
    buffers_.saved.scramble();
    buffers_.scratch.scramble();
  }

  Arguments forward_arguments() {
    Arguments arguments = buffers_.arguments();
    arguments.output_gradients.clear();
    arguments.input_gradients.clear();
    arguments.parameter_gradients.clear();
    return arguments;
  }

  // Shares as the executor does: an input that the backward pass reads keeps its memory, gradients share all
  // the same.
  void share(Arguments& arguments) {
    if (!task_.has_backward() || !kernel_.backward_reads().inputs) {
      arguments.outputs[0] = buffers_.inputs[0].data();
    }
    if (!arguments.input_gradients.empty() && arguments.input_gradients[0]) {
      arguments.input_gradients[0] = buffers_.output_gradients[0].data();
    }
  }

  void pass_output_gradient(Arguments& arguments) {
    for (float*& gradient : arguments.input_gradients) {
      if (gradient) gradient = buffers_.output_gradients[0].data();
    }
  }

  std::vector<std::vector<float>> outputs_of(const Arguments& arguments) const {
    std::vector<std::vector<float>> outputs;
    for (size_t i = 0; i < buffers_.outputs.size(); ++i) {
      outputs.emplace_back(arguments.outputs[i], arguments.outputs[i] + buffers_.outputs[i].size());
    }
    return outputs;
  }

  void hide_what_backward_must_not_read(bool shared) {
    BackwardReads reads = kernel_.backward_reads();
    for (size_t i = 0; i < buffers_.inputs.size(); ++i) {
      bool read = reads.inputs || (shared && i == 0 && reads.outputs);
      if (!read) buffers_.inputs[i].scramble();
    }
    if (!reads.outputs) {
      for (auto& each : buffers_.outputs) each.scramble();
    }
    buffers_.scratch.scramble();
  }

  void to_own(size_t p, const float* canonical, Buffer<float>& own) const {
    if (formats_[p].from_canonical) {
      formats_[p].from_canonical(canonical, own.data());
    } else {
      std::copy(canonical, canonical + own.size(), own.data());
    }
  }
  std::vector<float> to_canonical(size_t p, const Buffer<float>& own) const {
    if (!formats_[p].to_canonical) return own.values();
    std::vector<float> canonical(data_.parameters[p].size());
    formats_[p].to_canonical(own.data(), canonical.data());
    return canonical;
  }
  std::vector<std::vector<float>> canonical_parameters() const {
    std::vector<std::vector<float>> parameters;
    for (size_t p = 0; p < formats_.size(); ++p)
      parameters.push_back(to_canonical(p, buffers_.parameters[p]));
    return parameters;
  }

  AssertionResult collect_gradients(Results& results, const Arguments& backward) {
    results.input_gradients.clear();
    results.parameter_gradients.clear();
    for (size_t i = 0; i < buffers_.inputs.size(); ++i) {
      const float* gradient = backward.input_gradients[i];
      results.input_gradients.push_back(
          gradient ? std::vector<float>(gradient, gradient + buffers_.inputs[i].size())
                   : std::vector<float>());
    }
    for (size_t p = 0; p < formats_.size(); ++p) {
      results.parameter_gradients.emplace_back();
      if (!task_.parameter_gradients[p]) continue;
      const Buffer<float>& own = buffers_.parameter_gradients[p];
      results.parameter_gradients[p] = to_canonical(p, own);
      Buffer<float> again(own.size());
      to_own(p, results.parameter_gradients[p].data(), again);
      auto padding =
          close(fmt::format("gradient of parameter {} with its padding", p), again.values(), own.values(), 0);
      if (!padding) return padding;
    }
    return AssertionSuccess();
  }

  AssertionResult intact() const {
    bool whole = buffers_.saved.intact() && buffers_.scratch.intact();
    for (const auto* buffers :
         {&buffers_.inputs, &buffers_.outputs, &buffers_.output_gradients, &buffers_.input_gradients,
          &buffers_.parameters, &buffers_.parameter_gradients}) {
      for (const auto& each : *buffers) whole = whole && each.intact();
    }
    return whole ? AssertionSuccess() : AssertionFailure() << "the kernel writes after the end of a buffer";
  }

  const Task& task_;
  Kernel& kernel_;
  const TaskData<float>& data_;
  TaskBuffers<float> buffers_;
  std::vector<ParameterFormat> formats_;
};

}  // namespace

AssertionResult matches_reference(const Task& task, Kernel& kernel, double tolerance,
                                  const CheckOptions& options) {
  TaskData<float> data(task, options);
  auto reference = make_reference_kernel<float>(task);
  Results expected, actual;
  if (auto result = KernelRun(task, *reference, data).run(expected); !result)
    return result << " (the reference)";
  KernelRun run(task, kernel, data);
  for (const char* pass : {" (first run)", " (second run)"}) {
    if (auto result = run.run(actual); !result) return result << pass;
    if (auto result = close(expected, actual, tolerance); !result) return result << pass;
  }
  const bool wants_data = std::ranges::find(task.input_gradients, true) != task.input_gradients.end();
  if (task.has_backward() && task.layer().splits_backward() && wants_data) {
    if (auto result = run.run(actual, false, true); !result) return result << " (data first)";
    if (auto result = close(expected, actual, tolerance); !result) return result << " (data first)";
  }
  if (!kernel.in_place()) return AssertionSuccess();
  if (auto result = run.run(actual, true); !result) return result << " (in place)";
  auto result = close(expected, actual, tolerance);
  return result ? result : result << " (in place)";
}

AssertionResult carries(const Task& task, Kernel& kernel, float value, const CheckOptions& options) {
  TaskData<float> data(task, options);
  KernelRun run(task, kernel, data);
  const bool backward = task.has_backward();
  if (!(backward ? run.finite_gradients() : run.finite_outputs()))
    return AssertionFailure() << "not finite from finite values";
  // Whether `finite` notices each element.
  auto lost = [&](std::vector<float>& tensor, auto finite) -> int64_t {
    const int64_t size = static_cast<int64_t>(tensor.size()), step = std::max<int64_t>(1, size / 5);
    for (int64_t i = 0; i < size; i += step) {
      const float before = std::exchange(tensor[i], value);
      const bool unseen = finite();
      tensor[i] = before;
      if (unseen) return i;
    }
    return -1;
  };
  auto outputs = [&] { return run.finite_outputs(); };
  auto gradients = [&] { return run.finite_gradients(); };
  auto failure = [&](const char* what, size_t number, int64_t element) {
    return AssertionFailure() << fmt::format("{} at element {} of {} {} is lost", value, element, what,
                                             number);
  };
  for (size_t i = 0; i < data.inputs.size(); ++i) {
    if (i < options.inputs.size() && options.inputs[i].integers) continue;
    if (const int64_t at = lost(data.inputs[i], outputs); at >= 0) return failure("input", i, at);
  }
  for (size_t p = 0; p < data.parameters.size(); ++p) {
    if (backward && !task.parameter_gradients[p]) continue;
    if (const int64_t at = lost(data.parameters[p], outputs); at >= 0) return failure("parameter", p, at);
  }
  if (!backward) return AssertionSuccess();
  const int64_t at = lost(data.output_gradients[0], gradients);
  return at < 0 ? AssertionSuccess() : failure("output gradient", 0, at);
}

}  // namespace cortado::check
