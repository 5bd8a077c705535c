#include "tests/kernels/cut_run.h"

#include <cmath>
#include <fmt/format.h>
#include <map>

#include "cortado/base/compute_threads.h"
#include "cortado/kernels/reference/chain.h"
#include "cortado/kernels/reference/view.h"
#include "cortado/kernels/select.h"

#include "tests/kernels/buffers.h"

namespace cortado::check {
namespace {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

std::vector<float> part_of(const std::vector<float>& whole, const Place& from, const Place& to) {
  std::vector<float> part(to.size());
  for_each_index(to.box(), [&](const Index& index) { part[to(index)] = whole[from(index)]; });
  return part;
}

void add(const float* part, const Place& from, std::vector<double>& whole, const Place& to) {
  for_each_index(from.box(), [&](const Index& index) { whole[to(index)] += part[from(index)]; });
}

// One device: a task, its kernel, and memory filled with the task's parts of the whole.
class Device {
 public:
  Device(const Task& task, const std::string& only, const TaskData<float>& whole)
      : task_(task),
        kernel_(select_kernel(task, only).kernel),
        parameter_boxes_(parameter_boxes(task)),
        saved_(kernel_->saved_bytes().count),
        scratch_(kernel_->scratch_bytes().count),
        sums_(std::max(kernel_->forward_sums(), kernel_->backward_sums())) {
    for (size_t i = 0; i < task.inputs.size(); ++i) {
      inputs_.emplace_back(part_of(whole.inputs[i], tensor_place(Box::whole(task.inputs[i])),
                                   tensor_place(task.input_boxes[i])));
      input_gradients_.emplace_back(inputs_.back().size());
    }
    for (size_t k = 0; k < task.outputs.size(); ++k) {
      outputs_.emplace_back(task.local_output(k).size());
      output_gradients_.emplace_back(part_of(whole.output_gradients[k],
                                             tensor_place(Box::whole(task.outputs[k])),
                                             tensor_place(task.output_boxes[k])));
    }
    const auto specs = task_parameters(task);
    for (size_t p = 0; p < specs.size(); ++p) {
      formats_.push_back(kernel_->parameter_format(static_cast<int>(p)));
      std::vector<float> canonical =
          part_of(whole.parameters[p], parameter_place(Box::whole(specs[p].shape)), place(p));
      int64_t elements = formats_[p].elements > 0 ? formats_[p].elements : canonical.size();
      parameters_.emplace_back(elements);
      parameter_gradients_.emplace_back(elements);
      if (formats_[p].from_canonical) {
        formats_[p].from_canonical(canonical.data(), parameters_[p].data());
      } else {
        parameters_[p].set(canonical);
      }
    }
  }

  Kernel& kernel() { return *kernel_; }
  const Task& task() const { return task_; }
  std::vector<double>& sums() { return sums_; }
  Place place(size_t p) const { return parameter_place(parameter_boxes_[p]); }
  const std::string& format(size_t p) const { return formats_[p].name; }
  size_t parameter_count() const { return formats_.size(); }
  const float* output(size_t k) const { return results_[k].data(); }
  const float* input_gradient(size_t i) const {
    return (kernel_->passes_output_gradient() ? output_gradients_[0] : input_gradients_[i]).data();
  }
  std::vector<float> parameter(size_t p) const { return canonical(p, parameters_[p]); }
  std::vector<float> parameter_gradient(size_t p) const { return canonical(p, parameter_gradients_[p]); }

  void run(void (Kernel::*pass)(const Arguments&), bool backward) {
    scratch_.scramble();
    (kernel_.get()->*pass)(arguments(backward));
  }
  void keep_outputs() {
    for (auto& each : outputs_) results_.push_back(each.values());
  }
  void hide_what_backward_must_not_read() {
    for (auto& each : inputs_) {
      if (!kernel_->backward_reads().inputs) each.scramble();
    }
    for (auto& each : outputs_) {
      if (!kernel_->backward_reads().outputs) each.scramble();
    }
  }
  bool intact() const {
    bool whole = saved_.intact() && scratch_.intact();
    for (const auto* buffers :
         {&inputs_, &outputs_, &input_gradients_, &output_gradients_, &parameters_, &parameter_gradients_}) {
      for (const auto& each : *buffers) whole = whole && each.intact();
    }
    return whole;
  }

 private:
  static float* pointer(const Buffer<float>& buffer) { return buffer.size() > 0 ? buffer.data() : nullptr; }

  std::vector<float> canonical(size_t p, const Buffer<float>& own) const {
    if (!formats_[p].to_canonical) return own.values();
    std::vector<float> values(place(p).size());
    formats_[p].to_canonical(own.data(), values.data());
    return values;
  }

  Arguments arguments(bool backward) {
    Arguments result{.saved = saved_.data(), .scratch = scratch_.data(), .sums = sums_.data()};
    result.random = {.seed = 7, .iteration = 3, .owner = RandomStream::owner_of("layer")};
    for (auto& each : inputs_) result.inputs.push_back(pointer(each));
    for (auto& each : outputs_) result.outputs.push_back(pointer(each));
    for (auto& each : parameters_) result.parameters.push_back(pointer(each));
    if (!backward) return result;
    for (auto& each : output_gradients_) result.output_gradients.push_back(pointer(each));
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Buffer<float>& to =
          kernel_->passes_output_gradient() ? output_gradients_[0] : input_gradients_[i];
      result.input_gradients.push_back(task_.input_gradients[i] ? pointer(to) : nullptr);
    }
    for (size_t p = 0; p < parameters_.size(); ++p) {
      result.parameter_gradients.push_back(task_.parameter_gradients[p] ? pointer(parameter_gradients_[p])
                                                                        : nullptr);
    }
    return result;
  }

  Task task_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Box> parameter_boxes_;
  std::vector<ParameterFormat> formats_;
  std::vector<Buffer<float>> inputs_, outputs_, output_gradients_, input_gradients_, parameters_,
      parameter_gradients_;
  std::vector<std::vector<float>> results_;
  GuardedBytes saved_, scratch_;
  std::vector<double> sums_;
};

// Adds the devices' sums, of statistics over those of the same channels, and gives each the total.
void share_sums(std::vector<Device>& devices) {
  std::map<std::pair<int64_t, int64_t>, std::vector<double>> totals;
  auto key = [](Device& device) {
    const Box& box = device.task().domain_box;
    return box.rank() > 1 && !device.task().layer().sums(0) ? std::pair(box[1].begin, box[1].end)
                                                            : std::pair<int64_t, int64_t>(0, 0);
  };
  for (Device& device : devices) {
    auto& total = totals[key(device)];
    total.resize(device.sums().size());
    for (size_t i = 0; i < total.size(); ++i) total[i] += device.sums()[i];
  }
  for (Device& device : devices) device.sums() = totals[key(device)];
}

void run_all(std::vector<Device>& devices) {
  const Task& task = devices[0].task();
  auto each = [&](void (Kernel::*pass)(const Arguments&), bool backward) {
    for (Device& device : devices) device.run(pass, backward);
  };
  if (devices[0].kernel().forward_sums() > 0) {
    each(&Kernel::forward_partial, false);
    share_sums(devices);
  }
  each(&Kernel::forward, false);
  for (Device& device : devices) device.keep_outputs();
  if (!task.has_backward()) return;
  for (Device& device : devices) device.hide_what_backward_must_not_read();
  if (devices[0].kernel().backward_sums() > 0) {
    each(&Kernel::backward_partial, true);
    share_sums(devices);
  }
  if (task.layer().splits_backward()) each(&Kernel::backward_weights, true);
  each(&Kernel::backward, true);
}

// `floor`: of what counts as typical, for the data are numbers about 1, whose sums and differences may
// cancel.
AssertionResult sums_close(const std::string& what, const std::vector<float>& expected,
                           const std::vector<double>& actual, double tolerance, double floor = 0.01) {
  for (size_t i = 0; i < expected.size() && tolerance == same_bits; ++i)
    if (static_cast<float>(actual[i]) != expected[i])
      return AssertionFailure() << fmt::format("{}: offset {} is {} instead of {}", what, i, actual[i],
                                               expected[i]);
  if (tolerance == same_bits) return AssertionSuccess();
  double squares = 0;
  for (float value : expected) squares += static_cast<double>(value) * value;
  const double typical = expected.empty() ? 0 : std::max(floor, std::sqrt(squares / expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    double allowed = tolerance * std::max<double>(std::abs(expected[i]), typical);
    if (std::abs(actual[i] - expected[i]) <= allowed) continue;
    return AssertionFailure() << fmt::format("{}: offset {} is {} instead of {} (typical {})", what, i,
                                             actual[i], expected[i], typical);
  }
  return AssertionSuccess();
}

// The sum of the devices' values, each in its box of a tensor of that shape.
template <typename Values, typename PlaceOf>
std::vector<double> sum_of(std::vector<Device>& devices, const Place& whole, Values&& values,
                           PlaceOf&& place_of) {
  std::vector<double> sum(whole.size());
  for (Device& device : devices) {
    const auto& part = values(device);
    add(&part[0], place_of(device), sum, whole);
  }
  return sum;
}

AssertionResult outputs_equal(const CutCase& cut, const Device& whole, std::vector<Device>& devices) {
  for (size_t k = 0; k < whole.task().outputs.size(); ++k) {
    const Place place = tensor_place(whole.task().output_boxes[k]);
    auto place_of = [&](Device& device) { return tensor_place(device.task().output_boxes[k]); };
    auto sum = sum_of(
        devices, place, [&](Device& device) { return device.output(k); }, place_of);
    std::vector<float> expected(whole.output(k), whole.output(k) + place.size());
    if (auto r = sums_close(fmt::format("output {}", k), expected, sum, cut.tolerance); !r) return r;
    std::vector<float> ones(place.size(), 1.0f);
    auto count = sum_of(
        devices, place, [&](Device&) { return ones; }, place_of);
    const bool addends = whole.task().layer().sums(static_cast<int>(k));
    const double once = addends ? static_cast<double>(devices.size()) : static_cast<double>(cut.degrees.r);
    for (double each : count) {
      if (each != once) return AssertionFailure() << "output " << k << " is not covered once";
    }
  }
  return AssertionSuccess();
}

AssertionResult parameters_equal(const CutCase& cut, Device& whole, std::vector<Device>& devices) {
  std::map<std::string, std::string> formats;
  for (size_t p = 0; p < whole.parameter_count(); ++p) {
    const std::string what = fmt::format("parameter {}", p);
    const std::vector<float> expected = whole.parameter(p);
    for (Device& device : devices) {
      const std::vector<float> values = device.parameter(p);
      auto r = sums_close(what, part_of(expected, whole.place(p), device.place(p)),
                          {values.begin(), values.end()}, cut.tolerance);
      if (!r) return r;
      const std::string slice = what + device.place(p).box().text();
      const std::string& format = formats.try_emplace(slice, device.format(p)).first->second;
      if (format != device.format(p))
        return AssertionFailure() << "replicas of " << slice << " differ in order";
    }
    if (!whole.task().parameter_gradients[p]) continue;
    auto sum = sum_of(
        devices, whole.place(p), [&](Device& device) { return device.parameter_gradient(p); },
        [&](Device& device) { return device.place(p); });
    if (auto r = sums_close("gradient of " + what, whole.parameter_gradient(p), sum, cut.tolerance, 0.1); !r)
      return r;
  }
  return AssertionSuccess();
}

AssertionResult input_gradients_equal(const CutCase& cut, const Device& whole, std::vector<Device>& devices) {
  for (size_t i = 0; i < whole.task().inputs.size(); ++i) {
    if (!whole.task().input_gradients[i]) continue;
    const Place place = tensor_place(whole.task().input_boxes[i]);
    auto sum = sum_of(
        devices, place, [&](Device& device) { return device.input_gradient(i); },
        [&](Device& device) { return tensor_place(device.task().input_boxes[i]); });
    std::vector<float> expected(whole.input_gradient(i), whole.input_gradient(i) + place.size());
    if (auto r = sums_close(fmt::format("gradient of input {}", i), expected, sum, cut.tolerance); !r)
      return r;
  }
  return AssertionSuccess();
}

Range block(int64_t extent, int64_t parts, int64_t index) {
  return {extent * index / parts, extent * (index + 1) / parts};
}

}  // namespace

std::string CutCase::text() const {
  std::string text;
  for (const LayerPtr& layer : layers) text += std::string(layer->type()) + " ";
  for (const Shape& shape : inputs) text += shape.text() + " ";
  if (frozen) text += "frozen ";
  if (from_data) text += "from data ";
  if (shared) text += "shared ";
  return text + fmt::format("{} outputs, {}; cut n{} c{} d{} h{} w{} r{}", outputs,
                            phase == Phase::train ? "train" : "test", degrees.n, degrees.c, degrees.d,
                            degrees.h, degrees.w, degrees.r);
}

Task whole_task(const CutCase& cut) {
  Task task = cut.layers.size() > 1 ? cortado::chain_task(cut.layers, cut.phase, cut.inputs)
                                    : cortado::whole_task(cut.layers[0], cut.phase, cut.inputs, cut.outputs);
  if (cut.frozen) std::fill(task.parameter_gradients.begin(), task.parameter_gradients.end(), false);
  if (cut.from_data) std::fill(task.input_gradients.begin(), task.input_gradients.end(), false);
  task.canonical_parameters = cut.shared;
  return task;
}

std::vector<Box> parameter_boxes(const Task& task) {
  std::vector<Box> boxes;
  if (task.layers.size() == 1) {
    for (size_t p = 0; p < task.parameter_gradients.size(); ++p)
      boxes.push_back(task.parameter_box(0, static_cast<int>(p)));
    return boxes;
  }
  const auto links = chain_links(task);
  for (size_t layer = 0; layer < links.size(); ++layer) {
    for (int p = 0; p < links[layer].parameter_count; ++p)
      boxes.push_back(task.parameter_box(static_cast<int>(layer), p));
  }
  return boxes;
}

std::vector<Task> device_tasks(const CutCase& cut, const Task& whole) {
  const auto& degrees = cut.degrees;
  const int rank = whole.domain_box.rank();
  const std::pair<int, int64_t> axes[] = {
      {0, degrees.n}, {1, degrees.c}, {rank - 3, degrees.d}, {rank - 2, degrees.h}, {rank - 1, degrees.w}};
  int64_t devices = degrees.r;
  for (auto [axis, degree] : axes) devices *= degree;
  std::vector<Task> tasks;
  for (int64_t device = 0; device < devices; ++device) {
    Box box = whole.domain_box;
    int64_t rest = device / degrees.r;
    for (auto [axis, degree] : axes) {
      if (degree > 1) box[axis] = block(whole.domain_box[axis].end, degree, rest % degree);
      rest /= degree;
    }
    std::optional<Range> summed;
    if (degrees.r > 1) summed = block(whole.inputs[0][1], degrees.r, device % degrees.r);
    tasks.push_back(cut_task(whole, box, summed));
  }
  return tasks;
}

AssertionResult part_is_part_of_whole(const CutCase& cut, const std::string& kernels, int threads) {
  const Task whole = whole_task(cut);
  const TaskData<float> data(whole, cut.data);
  std::vector<Device> alone, devices;
  {
    const ComputeThreads one(1);
    alone.emplace_back(cut_task(whole, whole.domain_box), kernels, data);  // reads no more than it needs
    run_all(alone);
  }
  const ComputeThreads several(threads);
  for (const Task& task : device_tasks(cut, whole)) devices.emplace_back(task, kernels, data);
  run_all(devices);
  if (auto r = outputs_equal(cut, alone[0], devices); !r) return r;
  if (auto r = parameters_equal(cut, alone[0], devices); !r) return r;
  return input_gradients_equal(cut, alone[0], devices);
}

AssertionResult cut_equals_whole(const CutCase& cut, const std::string& only) {
  const Task whole = whole_task(cut);
  const TaskData<float> data(whole, cut.data);
  std::vector<Device> alone, devices;
  alone.emplace_back(whole, "reference", data);
  for (const Task& task : device_tasks(cut, whole)) devices.emplace_back(task, only, data);
  run_all(alone);
  run_all(devices);
  if (auto r = outputs_equal(cut, alone[0], devices); !r) return r;
  if (auto r = parameters_equal(cut, alone[0], devices); !r) return r;
  if (auto r = input_gradients_equal(cut, alone[0], devices); !r) return r;
  for (const Device& device : devices) {
    if (!device.intact()) return AssertionFailure() << "a kernel writes after the end of a buffer";
  }
  return AssertionSuccess();
}

}  // namespace cortado::check
