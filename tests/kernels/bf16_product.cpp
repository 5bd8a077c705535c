#include "tests/kernels/bf16_product.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "cortado/kernels/reference/reference.h"

#include "tests/kernels/typed_buffer.h"

namespace cortado::check {
namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

Numbers drawn(const char* what, int64_t size, DataKind kind) {
  const RandomStream stream = check_stream({}, what);
  Numbers values(size);
  for (int64_t i = 0; i < size; ++i) {
    const bool integers = kind == DataKind::small_integers;
    values[i] =
        integers ? std::floor(stream.uniform(i, 0, -3, 4)) : static_cast<float>(stream.uniform(i, 0, -1, 1));
  }
  return values;
}

Numbers in_bf16(Numbers values) {
  for (double& value : values) value = rounded(value, ElementType::bf16);
  return values;
}

AssertionResult close(const std::string& what, const Numbers& expected, const TypedBuffer& buffer,
                      double tolerance, ElementType type) {
  const Numbers actual = buffer.values();
  const double squares = std::inner_product(expected.begin(), expected.end(), expected.begin(), 0.0);
  const double typical = std::sqrt(squares / static_cast<double>(expected.size()));
  const double rounding = type == ElementType::bf16 ? 0x1p-8 : 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double size = std::abs(expected[i]);
    const double allowed = rounding * size + tolerance * std::max(size, typical);
    const bool equal = tolerance == 0 ? actual[i] == rounded(expected[i], type)
                                      : std::abs(actual[i] - expected[i]) <= allowed;
    if (!equal)
      return AssertionFailure() << fmt::format("{}: offset {} of {} is {} instead of {} (typical {})", what,
                                               i, expected.size(), actual[i], expected[i], typical);
  }
  return AssertionSuccess();
}

// The numbers of a task, as they are given: canonical, not rounded.
struct Given {
  Numbers source, target_gradient;
  std::vector<Numbers> parameters;  // weights, bias

  Given(const Task& task, DataKind kind)
      : source(drawn("source", task.local_input(0).size(), kind)),
        target_gradient(drawn("gradient", task.local_output(0).size(), kind)) {
    for (size_t p = 0; p < task.parameter_gradients.size(); ++p) {
      const int64_t size = task.parameter_box(0, static_cast<int>(p)).shape().size();
      parameters.push_back(drawn(p == 0 ? "weights" : "bias", size, kind));
    }
  }
};

// The layer by the reference, in double.
class Expected {
 public:
  Expected(const Task& task, const Given& given, bool exact_f32)
      : task_(alone(task)),
        kernel_(make_reference_kernel<double>(task_)),
        rounds_gradient_(!exact_f32 || task.output_type(0) == ElementType::bf16),
        source_(exact_f32 && task.input_type(0) == ElementType::f32 ? given.source : in_bf16(given.source)),
        parameters_(given.parameters),
        output(given.target_gradient.size()),
        source_gradient(given.source.size()),
        parameter_gradients(given.parameters) {
    if (!exact_f32) parameters_[0] = in_bf16(parameters_[0]);
    kernel_->forward(arguments());
  }

  void backward(const Numbers& target_gradient) {
    ArgumentsOf<double> given = arguments();
    Numbers gradient = rounds_gradient_ ? in_bf16(target_gradient) : target_gradient;
    given.output_gradients = {gradient.data()};
    given.input_gradients = {task_.input_gradients[0] ? source_gradient.data() : nullptr};
    for (size_t p = 0; p < parameters_.size(); ++p)
      given.parameter_gradients.push_back(task_.parameter_gradients[p] ? parameter_gradients[p].data()
                                                                       : nullptr);
    kernel_->backward_weights(given);
    kernel_->backward(given);
  }

 private:
  static Task alone(Task task) {
    task.layers.resize(1);
    task.input_types.clear();
    task.output_types.clear();
    return task;
  }
  ArgumentsOf<double> arguments() {
    saved_.resize(kernel_->saved_bytes().count);
    scratch_.resize(kernel_->scratch_bytes().count);
    ArgumentsOf<double> result{.saved = saved_.data(), .scratch = scratch_.data()};
    result.inputs = {source_.data()};
    result.outputs = {output.data()};
    for (Numbers& each : parameters_) result.parameters.push_back(each.data());
    return result;
  }

  Task task_;
  std::unique_ptr<KernelOf<double>> kernel_;
  bool rounds_gradient_;
  Numbers source_;
  std::vector<Numbers> parameters_;
  std::vector<std::byte> saved_, scratch_;

 public:
  Numbers output, source_gradient;
  std::vector<Numbers> parameter_gradients;
};

// The kernel with the memory of its runs.
class Run {
 public:
  Run(const Task& task, Kernel& kernel, const Given& given)
      : task_(task),
        kernel_(kernel),
        source_(given.source, task.input_type(0)),
        source_gradient_(source_.size(), task.input_type(0)),
        target_(std::ssize(given.target_gradient), task.output_type(0)),
        target_gradient_(given.target_gradient, task.output_type(0)),
        saved_(kernel.saved_bytes().count),
        scratch_(kernel.scratch_bytes().count) {
    for (size_t p = 0; p < given.parameters.size(); ++p) {
      formats_.push_back(kernel.parameter_format(static_cast<int>(p)));
      const int64_t own = formats_[p].elements > 0 ? formats_[p].elements : std::ssize(given.parameters[p]);
      parameters_.emplace_back(own);
      gradients_.emplace_back(own);
    }
    give(given);
  }

  void give(const Given& given) {
    source_.set(given.source);
    target_gradient_.set(given.target_gradient);
    for (size_t p = 0; p < formats_.size(); ++p) {
      const TypedBuffer canonical(given.parameters[p], ElementType::f32);
      if (formats_[p].from_canonical) {
        formats_[p].from_canonical(canonical.data(), parameters_[p].data());
      } else {
        parameters_[p].set(given.parameters[p]);
      }
    }
  }

  void forward() {
    saved_.scramble();
    scratch_.scramble();
    target_.scramble();
    kernel_.forward(arguments(false));
  }
  // What the kernel denies reading is gone.
  void backward(bool input_gradients_first) {
    if (!kernel_.backward_reads().inputs) source_.scramble();
    if (!kernel_.backward_reads().outputs) target_.scramble();
    source_gradient_.scramble();
    for (TypedBuffer& each : gradients_) each.scramble();
    Arguments given = arguments(true);
    given.input_gradients_first = input_gradients_first;
    for (const bool data : {input_gradients_first, !input_gradients_first}) {
      scratch_.scramble();
      if (data) {
        kernel_.backward(given);
      } else {
        kernel_.backward_weights(given);
      }
    }
  }

  const TypedBuffer& output() const { return target_; }
  const TypedBuffer& source_gradient() const { return source_gradient_; }
  TypedBuffer parameter_gradient(size_t p, int64_t canonical_size) const {
    TypedBuffer canonical(canonical_size);
    if (formats_[p].to_canonical) {
      formats_[p].to_canonical(gradients_[p].data(), canonical.data());
    } else {
      canonical.set(gradients_[p].values());
    }
    return canonical;
  }
  // Checks that the order's padding, too, is written, with zeros.
  AssertionResult padding_is_zero(size_t p, const TypedBuffer& canonical) const {
    if (!formats_[p].from_canonical) return AssertionSuccess();
    TypedBuffer again(gradients_[p].size());
    formats_[p].from_canonical(canonical.data(), again.data());
    return close("gradient of the weights with its padding", again.values(), gradients_[p], 0,
                 ElementType::f32);
  }
  AssertionResult intact(const Given& given) const {
    bool whole = saved_.intact() && scratch_.intact() && source_.intact() && source_gradient_.intact() &&
                 target_.intact() && target_gradient_.intact();
    for (const auto* buffers : {&parameters_, &gradients_})
      for (const TypedBuffer& each : *buffers) whole = whole && each.intact();
    if (!whole) return AssertionFailure() << "the kernel writes after the end of a buffer";
    if (kernel_.overwrites_output_gradients()) return AssertionSuccess();
    const TypedBuffer untouched(given.target_gradient, task_.output_type(0));
    return close("the output gradient, not to be written,", untouched.values(), target_gradient_, 0,
                 target_gradient_.type());
  }
  bool finite_gradients() const {
    bool all = true;
    if (task_.input_gradients[0]) all = all && finite(source_gradient_);
    for (size_t p = 0; p < gradients_.size(); ++p)
      if (task_.parameter_gradients[p]) all = all && finite(gradients_[p]);
    return all;
  }
  bool finite_output() const { return finite(target_); }

 private:
  static bool finite(const TypedBuffer& buffer) {
    return std::ranges::all_of(buffer.values(), [](double value) { return std::isfinite(value); });
  }
  Arguments arguments(bool backward) {
    Arguments result{.saved = saved_.data(), .scratch = scratch_.data()};
    result.inputs = {source_.data()};
    result.outputs = {target_.data()};
    for (TypedBuffer& each : parameters_) result.parameters.push_back(each.data());
    if (!backward) return result;
    result.output_gradients = {target_gradient_.data()};
    result.input_gradients = {task_.input_gradients[0] ? source_gradient_.data() : nullptr};
    for (size_t p = 0; p < gradients_.size(); ++p)
      result.parameter_gradients.push_back(task_.parameter_gradients[p] ? gradients_[p].data() : nullptr);
    return result;
  }

  const Task& task_;
  Kernel& kernel_;
  TypedBuffer source_, source_gradient_, target_, target_gradient_;
  std::vector<TypedBuffer> parameters_, gradients_;
  std::vector<ParameterFormat> formats_;
  GuardedBytes saved_, scratch_;
};

AssertionResult gradients_equal(const Task& task, const Run& run, const Expected& expected, double tolerance,
                                bool exact_f32) {
  for (size_t p = 0; p < expected.parameter_gradients.size(); ++p) {
    if (!task.parameter_gradients[p]) continue;
    const Numbers& wanted = expected.parameter_gradients[p];
    const TypedBuffer actual = run.parameter_gradient(p, std::ssize(wanted));
    if (auto r = close(p == 0 ? "gradient of the weights" : "gradient of the bias", wanted, actual, tolerance,
                       actual.type());
        !r)
      return r;
    if (auto r = run.padding_is_zero(p, actual); !r) return r;
  }
  if (!task.input_gradients[0]) return AssertionSuccess();
  // oneDNN makes that of an f32 source in bf16, too.
  return close("gradient of the source", expected.source_gradient, run.source_gradient(), tolerance,
               exact_f32 ? task.input_type(0) : ElementType::bf16);
}

}  // namespace

AssertionResult matches_in_bf16(const Task& task, Kernel& kernel, double tolerance, DataKind data,
                                bool exact_f32) {
  const bool relu = task.layers.size() > 1;
  const Given given(task, data);
  Expected expected(task, given, exact_f32);
  if (relu)
    for (double& value : expected.output) value = std::max(value, 0.0);
  Run run(task, kernel, given);
  const bool both = task.has_backward() && task.input_gradients[0];
  for (const bool input_gradients_first : both ? std::vector{false, true} : std::vector{false, false}) {
    const std::string which = input_gradients_first ? " (input gradients first)" : "";
    run.give(given);
    run.forward();
    if (auto r = close("output", expected.output, run.output(), tolerance, run.output().type()); !r)
      return r << which;
    if (task.has_backward()) {
      Numbers gradient = given.target_gradient;
      const Numbers output = run.output().values();
      for (size_t i = 0; i < gradient.size(); ++i)
        if (relu && !(output[i] > 0)) gradient[i] = 0;
      expected.backward(gradient);
      run.backward(input_gradients_first);
      if (auto r = gradients_equal(task, run, expected, tolerance, exact_f32); !r) return r << which;
    }
    if (auto r = run.intact(given); !r) return r << which;
  }
  return AssertionSuccess();
}

AssertionResult carries_in_bf16(const Task& task, Kernel& kernel, float value) {
  Given given(task, DataKind::random);
  Run run(task, kernel, given);
  // Whether the value at some element is not noticed; a few are tried.
  auto lost = [&](Numbers& numbers, bool backward) {
    const size_t step = std::max<size_t>(1, numbers.size() / 7);
    for (size_t i = 0; i < numbers.size(); i += step) {
      const double before = std::exchange(numbers[i], value);
      run.give(given);
      numbers[i] = before;
      run.forward();
      if (backward) run.backward(false);
      if (backward ? run.finite_gradients() : run.finite_output()) return true;
    }
    return false;
  };
  run.forward();
  if (!run.finite_output()) return AssertionFailure() << "not finite from finite values";
  if (lost(given.source, false)) return AssertionFailure() << value << " in the source is lost";
  for (Numbers& parameter : given.parameters)
    if (lost(parameter, false)) return AssertionFailure() << value << " in a parameter is lost";
  if (task.has_backward() && lost(given.target_gradient, true))
    return AssertionFailure() << value << " in the output gradient is lost";
  return AssertionSuccess();
}

AssertionResult carries_overflow_in_bf16(const Task& task, Kernel& kernel) {
  Given given(task, DataKind::random);
  std::ranges::fill(given.source, 3e38);
  std::ranges::fill(given.parameters[0], -1.0);
  Run run(task, kernel, given);
  run.forward();
  return run.finite_output() ? AssertionFailure() << "a sum beyond float is lost" : AssertionSuccess();
}

}  // namespace cortado::check
