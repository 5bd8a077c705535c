#include "tests/kernels/bf16_run.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <optional>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/select.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/precision.h"

#include "tests/kernels/on_device.h"
#include "tests/kernels/typed_buffer.h"

namespace cortado::check {
namespace {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

void round_all(Numbers& values, ElementType type) {
  for (double& value : values) value = rounded(value, type);
}

using TypedBuffers = std::vector<TypedBuffer>;

// Compares by `tolerance` and, in bf16, one rounding; `floor` as in cut_run.cpp.
AssertionResult close(const std::string& what, const Numbers& expected, const Numbers& actual,
                      ElementType type, double tolerance, double floor = 0.01) {
  const double squares = std::inner_product(expected.begin(), expected.end(), expected.begin(), 0.0);
  const double typical = expected.empty() ? 0 : std::max(floor, std::sqrt(squares / expected.size()));
  const double rounding = type == ElementType::bf16 ? 0x1p-8 : 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double size = std::abs(expected[i]);
    const bool equal = tolerance == 0 ? actual[i] == rounded(expected[i], type)
                                      : std::abs(actual[i] - expected[i]) <=
                                            rounding * size + tolerance * std::max(size, typical);
    if (equal) continue;
    return AssertionFailure() << fmt::format("{}: offset {} is {} instead of {} (typical {})", what, i,
                                             actual[i], expected[i], typical);
  }
  return AssertionSuccess();
}

// What a device holds: tensors of its own, the same slices of parameters where their shapes are equal. All
// numbers are such that their types hold them.
TaskData<double> device_data(const Task& task, CheckOptions options, uint64_t device) {
  TaskData<double> parameters(task, options);
  options.seed += device;
  TaskData<double> data(task, options);
  data.parameters = std::move(parameters.parameters);
  const std::vector<Box> slices = parameter_boxes(task);
  for (size_t p = 0; p < slices.size(); ++p) {
    data.parameters[p].resize(slices[p].shape().size());
    round_all(data.parameters[p], ElementType::f32);
  }
  for (size_t i = 0; i < data.inputs.size(); ++i)
    round_all(data.inputs[i], task.input_type(static_cast<int>(i)));
  for (size_t k = 0; k < data.output_gradients.size(); ++k)
    round_all(data.output_gradients[k], task.output_type(static_cast<int>(k)));
  return data;
}

// The derivative at an output of that value, of a function whose kernel keeps only the output. The reference
// computes it from the input.
std::optional<double> derivative(const Task& task, double y) {
  const auto* pointwise = dynamic_cast<const Pointwise*>(&task.layer());
  if (!pointwise || task.layers.size() > 1) return {};
  const PointwiseFunction& function = pointwise->function();
  if (const auto* elu = std::get_if<EluOptions>(&function)) return y > 0 ? 1 : y + elu->alpha;
  if (std::get_if<SigmoidOptions>(&function)) return y * (1 - y);
  if (std::get_if<TanhOptions>(&function)) return 1 - y * y;
  if (function == PointwiseFunction(ExpOptions{})) return y;
  return {};
}

std::unique_ptr<Kernel> selected(const Task& task, const std::string& kernels, device::DeviceRuntime* there) {
  std::unique_ptr<Kernel> kernel = select_kernel(task, kernels).kernel;
  if (!there) return kernel;
  return std::make_unique<OnDevice>(std::move(kernel), task, *there);
}

// One device: its task, the kernel and the reference, and the memory of both.
class Bf16Device {
 public:
  Bf16Device(const Task& task, const CheckOptions& options, uint64_t device, const std::string& kernels,
             device::DeviceRuntime* there)
      : task_(task),
        kernel_(selected(task_, kernels, there)),
        reference_(make_reference_kernel<double>(task_)),
        data_(device_data(task_, options, device)),
        expected_(task_, *reference_, data_),
        saved_(kernel_->saved_bytes().count),
        scratch_(kernel_->scratch_bytes().count),
        sums_(std::max(kernel_->forward_sums(), kernel_->backward_sums())),
        expected_sums_(std::max(reference_->forward_sums(), reference_->backward_sums())) {
    auto add = [](TypedBuffers& buffers, const Numbers& values, ElementType type) {
      buffers.emplace_back(static_cast<int64_t>(values.size()), type);
    };
    for (size_t i = 0; i < data_.inputs.size(); ++i) {
      const ElementType type = task.input_type(static_cast<int>(i));
      add(inputs_, data_.inputs[i], type);
      add(input_gradients_, data_.inputs[i], type);
    }
    for (size_t k = 0; k < data_.output_gradients.size(); ++k) {
      const ElementType type = task.output_type(static_cast<int>(k));
      add(outputs_, data_.output_gradients[k], type);
      add(output_gradients_, data_.output_gradients[k], type);
    }
    for (const Numbers& parameter : data_.parameters) {
      add(parameters_, parameter, ElementType::f32);
      add(parameter_gradients_, parameter, ElementType::f32);
    }
  }

  const Task& task() const { return task_; }
  bool has_sums(bool backward) const {
    return (backward ? kernel_->backward_sums() : kernel_->forward_sums()) > 0;
  }
  std::vector<double>& sums(bool of_reference) { return of_reference ? expected_sums_ : sums_; }

  // `in_place`, where the kernel allows it: output 0 over input 0 unless backward reads the inputs; gradients
  // likewise.
  void prepare(bool in_place) {
    in_place_ = in_place && kernel_->in_place();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i].set(data_.inputs[i]);
      expected_.inputs[i].set(data_.inputs[i]);
    }
    for (size_t p = 0; p < parameters_.size(); ++p) {
      parameters_[p].set(data_.parameters[p]);
      expected_.parameters[p].set(data_.parameters[p]);
    }
    for (size_t k = 0; k < outputs_.size(); ++k) {
      output_gradients_[k].set(data_.output_gradients[k]);
      expected_.output_gradients[k].set(data_.output_gradients[k]);
    }
    for (auto* buffers : {&outputs_, &input_gradients_, &parameter_gradients_})
      for (TypedBuffer& each : *buffers) each.scramble();
    saved_.scramble();
  }

  void run(void (Kernel::*pass)(const Arguments&),
           void (KernelOf<double>::*reference)(const ArgumentsOf<double>&)) {
    scratch_.scramble();
    (kernel_.get()->*pass)(arguments());
    (reference_.get()->*reference)(expected_arguments());
  }

  AssertionResult outputs_equal(double tolerance) const {
    for (size_t k = 0; k < outputs_.size(); ++k) {
      auto r = close(fmt::format("output {}", k), expected_.outputs[k].values(), output(k).values(),
                     output(k).type(), tolerance);
      if (!r) return r;
    }
    for (size_t p = 0; p < parameters_.size(); ++p) {
      auto r = close(fmt::format("parameter {}", p), expected_.parameters[p].values(),
                     parameters_[p].values(), ElementType::f32, tolerance);
      if (!r) return r;
    }
    return AssertionSuccess();
  }

  // Before the backward pass: both kernels read the rounded outputs.
  void hide_what_backward_must_not_read() {
    for (size_t k = 0; k < outputs_.size(); ++k) expected_.outputs[k].set(output(k).values());
    const BackwardReads reads = kernel_->backward_reads();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const bool output = i == 0 && shares_output() && reads.outputs;
      if (!reads.inputs && !output) inputs_[i].scramble();
    }
    if (!reads.outputs)
      for (TypedBuffer& each : outputs_) each.scramble();
  }

  AssertionResult gradients_equal(double tolerance) const {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!task_.input_gradients[i]) continue;
      const TypedBuffer& actual = input_gradient(i);
      auto r = close(fmt::format("gradient of input {}", i), expected_input_gradient(i), actual.values(),
                     actual.type(), tolerance);
      if (!r) return r;
    }
    for (size_t p = 0; p < parameters_.size(); ++p) {
      if (!task_.parameter_gradients[p]) continue;
      auto r = close(fmt::format("gradient of parameter {}", p), expected_.parameter_gradients[p].values(),
                     parameter_gradients_[p].values(), ElementType::f32, tolerance, 0.1);
      if (!r) return r;
    }
    const bool may_write = in_place_ || kernel_->overwrites_output_gradients();
    for (size_t k = 0; !may_write && k < output_gradients_.size(); ++k)
      if (output_gradients_[k].values() != data_.output_gradients[k])
        return AssertionFailure() << "the kernel overwrites output gradient " << k << " without saying so";
    return AssertionSuccess();
  }

  AssertionResult intact() const {
    bool whole = saved_.intact() && scratch_.intact();
    for (const auto* buffers :
         {&inputs_, &outputs_, &input_gradients_, &output_gradients_, &parameters_, &parameter_gradients_})
      for (const TypedBuffer& each : *buffers) whole = whole && each.intact();
    return whole ? AssertionSuccess() : AssertionFailure() << "the kernel writes after the end of a buffer";
  }

 private:
  bool shares_output() const {
    return in_place_ && !(task_.has_backward() && kernel_->backward_reads().inputs);
  }
  const TypedBuffer& output(size_t k) const { return k == 0 && shares_output() ? inputs_[0] : outputs_[k]; }
  const TypedBuffer& input_gradient(size_t i) const {
    const bool passed = kernel_->passes_output_gradient() || (in_place_ && i == 0);
    return passed ? output_gradients_[0] : input_gradients_[i];
  }

  Numbers expected_input_gradient(size_t i) const {
    if (reference_->passes_output_gradient()) return expected_.output_gradients[0].values();
    Numbers gradient = expected_.input_gradients[i].values();
    if (kernel_->backward_reads().inputs || !derivative(task_, 0)) return gradient;
    const Numbers outputs = expected_.outputs[0].values();
    for (size_t at = 0; at < gradient.size(); ++at)
      gradient[at] = data_.output_gradients[0][at] * *derivative(task_, outputs[at]);
    return gradient;
  }

  Arguments arguments() {
    Arguments result{.saved = saved_.data(), .scratch = scratch_.data(), .sums = sums_.data()};
    result.random = expected_.arguments().random;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      result.inputs.push_back(inputs_[i].data());
      result.input_gradients.push_back(task_.input_gradients[i] ? input_gradient(i).data() : nullptr);
    }
    for (size_t k = 0; k < outputs_.size(); ++k) {
      result.outputs.push_back(output(k).data());
      result.output_gradients.push_back(output_gradients_[k].data());
    }
    for (size_t p = 0; p < parameters_.size(); ++p) {
      result.parameters.push_back(parameters_[p].data());
      result.parameter_gradients.push_back(task_.parameter_gradients[p] ? parameter_gradients_[p].data()
                                                                        : nullptr);
    }
    return result;
  }
  ArgumentsOf<double> expected_arguments() {
    ArgumentsOf<double> result = expected_.arguments();
    result.sums = expected_sums_.data();
    if (reference_->passes_output_gradient())
      for (double*& gradient : result.input_gradients)
        if (gradient) gradient = expected_.output_gradients[0].data();
    return result;
  }

  Task task_;
  std::unique_ptr<Kernel> kernel_;
  std::unique_ptr<KernelOf<double>> reference_;
  TaskData<double> data_;
  TaskBuffers<double> expected_;
  TypedBuffers inputs_, outputs_, input_gradients_, output_gradients_, parameters_, parameter_gradients_;
  GuardedBytes saved_, scratch_;
  std::vector<double> sums_, expected_sums_;
  bool in_place_ = false;
};
using Devices = std::vector<std::unique_ptr<Bf16Device>>;

// Adds the sums of the devices that share them: of statistics, those of the same channels.
void share_sums(Devices& devices, bool of_reference) {
  std::map<std::pair<int64_t, int64_t>, Numbers> totals;
  auto total_of = [&](const Bf16Device& device) -> Numbers& {
    const Box& box = device.task().domain_box;
    const bool by_channels = box.rank() > 1 && !device.task().layer().sums(0);
    return totals[by_channels ? std::pair(box[1].begin, box[1].end) : std::pair<int64_t, int64_t>(0, 0)];
  };
  for (auto& device : devices) {
    Numbers& total = total_of(*device);
    const Numbers& sums = device->sums(of_reference);
    total.resize(sums.size());
    for (size_t i = 0; i < total.size(); ++i) total[i] += sums[i];
  }
  for (auto& device : devices) device->sums(of_reference) = total_of(*device);
}

AssertionResult run_all(Devices& devices, bool in_place, double tolerance) {
  const Task& task = devices[0]->task();
  for (auto& device : devices) device->prepare(in_place);
  auto each = [&](auto pass, auto reference) {
    for (auto& device : devices) device->run(pass, reference);
  };
  auto sums = [&](auto pass, auto reference) {
    each(pass, reference);
    for (bool of_reference : {false, true}) share_sums(devices, of_reference);
  };
  using Double = KernelOf<double>;
  if (devices[0]->has_sums(false)) sums(&Kernel::forward_partial, &Double::forward_partial);
  each(&Kernel::forward, &Double::forward);
  for (auto& device : devices)
    if (auto r = device->outputs_equal(tolerance); !r) return r;
  if (task.has_backward()) {
    for (auto& device : devices) device->hide_what_backward_must_not_read();
    if (devices[0]->has_sums(true)) sums(&Kernel::backward_partial, &Double::backward_partial);
    if (task.layer().splits_backward()) each(&Kernel::backward_weights, &Double::backward_weights);
    each(&Kernel::backward, &Double::backward);
    for (auto& device : devices)
      if (auto r = device->gradients_equal(tolerance); !r) return r;
  }
  for (auto& device : devices)
    if (auto r = device->intact(); !r) return r;
  return AssertionSuccess();
}

}  // namespace

Task in_bf16(const Task& task, const CheckOptions& options) {
  Task narrow = task;
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    const bool integers = i < options.inputs.size() && options.inputs[i].integers;
    narrow.input_types.push_back(integers ? ElementType::f32 : ElementType::bf16);
  }
  for (size_t k = 0; k < task.outputs.size(); ++k)
    narrow.output_types.push_back(output_type(*task.layers.back(), narrow.input_types, static_cast<int>(k)));
  return narrow;
}

AssertionResult equals_reference_in_bf16(const CutCase& cut, const std::string& kernels,
                                         device::DeviceRuntime* device) {
  Devices devices;
  for (const Task& task : device_tasks(cut, whole_task(cut)))
    devices.push_back(
        std::make_unique<Bf16Device>(in_bf16(task, cut.data), cut.data, devices.size(), kernels, device));
  if (auto r = run_all(devices, false, cut.tolerance); !r) return r;
  auto r = run_all(devices, true, cut.tolerance);
  return r ? r : r << " (in place)";
}

}  // namespace cortado::check
