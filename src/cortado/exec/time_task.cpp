#include "cortado/exec/time_task.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <optional>
#include <unistd.h>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/base/error.h"
#include "cortado/base/parallel_for.h"
#include "cortado/base/seconds_since.h"
#include "cortado/comm/processors.h"
#include "cortado/device/host_view.h"
#include "cortado/device/memory.h"
#include "cortado/exec/timed_runs.h"
#include "cortado/kernels/element.h"
#include "cortado/kernels/kernel.h"
#include "cortado/kernels/select.h"
#include "cortado/kernels/tensor_type.h"

namespace cortado {
namespace {

// Seconds below which a first run does not count: libraries write their code in it.
constexpr double quick = 0.1;

// The caches that the compute threads' cores have for themselves.
Bytes own_cache_size() {
  constexpr int64_t usual = int64_t{1} << 20;
  const int64_t size = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return {(size > 0 ? size : usual) * compute_threads()};
}

// How much must be read until caches have forgotten what an iteration would have pushed out of them. A shared
// cache beyond `most` keeps its contents through an iteration, too; then only the cores' own caches forget.
// (On some processors the C library gives the size of a whole socket's cache.)
Bytes forgetting_size() {
  constexpr int64_t usual = int64_t{32} << 20, most = int64_t{128} << 20;
  const int64_t size = Topology::of_process().last_cache().count;
  if (size > most) return {4 * own_cache_size().count};
  return {size > 0 ? size : usual};
}

template <typename E>
void fill(E* values, int64_t count, float low, float high) {
  parallel_ranges(count, [&](int64_t begin, int64_t end) {
    uint32_t state = static_cast<uint32_t>(begin) * 2654435761u + 12345u;
    for (int64_t i = begin; i < end; ++i) {
      state = state * 1664525u + 1013904223u;
      assign(values[i], low + (high - low) * static_cast<float>(state >> 8) * 0x1p-24f);
    }
  });
}

// Reads memory, so that caches hold it (and, where there is more of it than they hold, nothing else).
void read(const float* values, int64_t count) {
  std::vector<float> sums(static_cast<size_t>(compute_threads()));
  parallel_for(std::ssize(sums), [&](int64_t thread) {
    const int64_t begin = count * thread / std::ssize(sums), end = count * (thread + 1) / std::ssize(sums);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = begin; i < end; ++i) sum += values[i];
    sums[static_cast<size_t>(thread)] = sum;
  });
  volatile float kept = sums[0];  // the reads count
  static_cast<void>(kept);
}

// A kernel with tensors of its own.
class Stage {
 public:
  Stage(const Task& task, Kernel& kernel, device::DeviceRuntime& device)
      : task_(task), kernel_(kernel), device_(device) {
    plan();
    memory_ = device::Memory({size_}, device);
    // The system gives pages when they are touched.
    if (device.host_accessible()) fill(memory_.floats(), elements_in({size_}, ElementType::f32), 0, 0);
    place();
  }

  PassTimes run(int most_runs) {
    TimedRuns runs(most_runs);
    if (const PassTimes first = once(); first.total().count >= quick) runs.add(first);
    while (!runs.are_enough()) runs.add(once());
    return runs.median();
  }

 private:
  struct Part {
    int64_t begin = 0, elements = 0;  // begin: bytes
    ElementType type = ElementType::f32;
    int64_t floats() const { return (bytes_of(elements, type).count + 3) / 4; }
  };

  Part part(int64_t elements, ElementType type = ElementType::f32) {
    constexpr int64_t alignment = 4096;  // bytes
    const Part part{size_, elements, type};
    size_ += (bytes_of(elements, type).count + alignment - 1) / alignment * alignment;
    return part;
  }
  Part bytes(int64_t count) { return part((count + 3) / 4); }
  Part input_part(size_t i) {
    return part(task_.input_boxes[i].shape().size(), task_.input_type(static_cast<int>(i)));
  }
  Part output_part(size_t k) {
    return part(task_.output_boxes[k].shape().size(), task_.output_type(static_cast<int>(k)));
  }
  float* at(const Part& part) const { return memory_.floats(part.begin); }
  // By the kernels.
  template <typename T = float>
  T* reached(const Part& part) const {
    return device_.for_kernels(reinterpret_cast<T*>(at(part)));
  }
  void fill_part(const Part& part, float low, float high) const {
    std::vector<float> copy(device_.host_accessible() ? 0 : static_cast<size_t>(part.floats()));
    float* const values = copy.empty() ? at(part) : copy.data();
    with_tensor_type(part.type, [&]<typename E>() { fill(elements<E>(values), part.elements, low, high); });
    if (!copy.empty()) device::write(device_, at(part), copy);
  }

  void plan() {
    const bool in_place = kernel_.in_place() && task_.input_boxes.size() == 1;
    for (size_t i = 0; i < task_.input_boxes.size(); ++i) inputs_.push_back(input_part(i));
    for (size_t k = 0; k < task_.output_boxes.size(); ++k)
      outputs_.push_back(in_place && k == 0 ? inputs_[0] : output_part(k));
    for (size_t layer = 0; layer < task_.layers.size(); ++layer) {
      const size_t count = layer_parameters(layer);
      for (size_t p = 0; p < count; ++p) {
        const auto format = kernel_.parameter_format(static_cast<int>(parameters_.size()));
        const Box box = task_.parameter_box(static_cast<int>(layer), static_cast<int>(p));
        parameters_.push_back(part(std::max(format.elements, box.shape().size())));
      }
    }
    saved_ = bytes(kernel_.saved_bytes().count);
    scratch_ = bytes(kernel_.scratch_bytes().count);
    sums_ = part(2 * std::max(kernel_.forward_sums(), kernel_.backward_sums()));
    if (!task_.has_backward()) return;
    for (size_t k = 0; k < task_.output_boxes.size(); ++k) output_gradients_.push_back(output_part(k));
    for (size_t i = 0; i < task_.input_boxes.size(); ++i) {
      const bool shared = kernel_.passes_output_gradient() || (in_place && i == 0);
      input_gradients_.push_back(shared ? output_gradients_[0] : input_part(i));
    }
    for (const Part& parameter : parameters_) parameter_gradients_.push_back(part(parameter.elements));
  }

  size_t layer_parameters(size_t layer) const {
    return task_.layers[layer]->parameters(layer == 0 ? task_.inputs : task_.outputs).size();
  }

  void place() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      // What has no gradient is a label or an index: 0 is always one.
      const bool data = task_.layer().differentiable(static_cast<int>(i));
      fill_part(inputs_[i], data ? -1 : 0, data ? 1 : 0);
      arguments_.inputs.push_back(reached(inputs_[i]));
    }
    for (const Part& output : outputs_) arguments_.outputs.push_back(reached(output));
    for (size_t p = 0; p < parameters_.size(); ++p) {
      fill_part(parameters_[p], 0.001f, 0.1f);
      arguments_.parameters.push_back(reached(parameters_[p]));
    }
    arguments_.saved = reached<std::byte>(saved_);
    arguments_.scratch = reached<std::byte>(scratch_);
    arguments_.sums = reached<double>(sums_);
    arguments_.stream = device_.queue().stream();
    arguments_.random = {1, 0, 1};
    if (!task_.has_backward()) return;
    for (const Part& gradient : output_gradients_) {
      fill_part(gradient, -0.1f, 0.1f);
      arguments_.output_gradients.push_back(reached(gradient));
    }
    for (size_t i = 0; i < input_gradients_.size(); ++i)
      arguments_.input_gradients.push_back(task_.input_gradients[i] ? reached(input_gradients_[i]) : nullptr);
    for (size_t p = 0; p < parameters_.size(); ++p) {
      const bool wanted = p < task_.parameter_gradients.size() && task_.parameter_gradients[p];
      arguments_.parameter_gradients.push_back(wanted ? reached(parameter_gradients_[p]) : nullptr);
    }
  }

  // One iteration's passes.
  PassTimes once() {
    PassTimes times;
    forget_all_but(inputs_);
    times.forward = seconds_of([&] {
      if (kernel_.forward_sums() > 0) kernel_.forward_partial(arguments_);
      kernel_.forward(arguments_);
    });
    if (!task_.has_backward()) return times;
    forget_all_but(output_gradients_);
    const bool split = task_.layer().splits_backward();
    if (split && any_wanted(task_.parameter_gradients))
      times.backward_weights = seconds_of([&] { kernel_.backward_weights(arguments_); });
    if (!split || any_wanted(task_.input_gradients)) {
      times.backward = seconds_of([&] {
        if (kernel_.backward_sums() > 0) kernel_.backward_partial(arguments_);
        kernel_.backward(arguments_);
      });
    }
    return times;
  }

  void forget_all_but(const std::vector<Part>& kept) {
    if (!device_.host_accessible()) return;
    static const device::Memory other = [] {
      device::Memory memory(forgetting_size());
      fill(memory.floats(), memory.size().count / 4, 0, 1);
      return memory;
    }();
    // A task much larger than the caches pushes everything out by itself.
    if (size_ < 4 * other.size().count) read(other.floats(), other.size().count / 4);
    static const int64_t own_cache = elements_in(own_cache_size(), ElementType::f32);
    for (const Part& part : kept) {
      if (part.floats() <= own_cache) read(at(part), part.floats());
    }
  }

  template <typename Pass>
  Seconds seconds_of(Pass&& pass) {
    const auto start = std::chrono::steady_clock::now();
    device_.queue().launch(pass);
    device_.queue().finish();
    return seconds_since(start);
  }

  const Task& task_;
  Kernel& kernel_;
  device::DeviceRuntime& device_;
  int64_t size_ = 0;
  std::vector<Part> inputs_, outputs_, parameters_, output_gradients_, input_gradients_, parameter_gradients_;
  Part saved_, scratch_, sums_;
  device::Memory memory_;
  Arguments arguments_;
};

size_t parameters_before(const Task& task, size_t layers) {
  size_t count = 0;
  for (size_t k = 0; k < layers; ++k)
    count += task.layers[k]->parameters(k == 0 ? task.inputs : task.outputs).size();
  return count;
}

// The first `layers` layers of a chain. All layers after the first have its output's shape and type.
Task front_of(const Task& task, size_t layers) {
  Task front = task;
  front.layers.resize(layers);
  front.parameter_gradients.resize(
      std::min(task.parameter_gradients.size(), parameters_before(task, layers)));
  return front;
}

Task rest_of(const Task& task, size_t layers) {
  Task rest = task;
  rest.layers.erase(rest.layers.begin(), rest.layers.begin() + static_cast<std::ptrdiff_t>(layers));
  rest.inputs = {task.outputs[0]};
  rest.input_types = {task.output_type(0)};
  rest.input_boxes = {task.output_boxes[0]};
  rest.input_gradients = {front_of(task, layers).has_backward()};
  const size_t before = std::min(task.parameter_gradients.size(), parameters_before(task, layers));
  rest.parameter_gradients.erase(rest.parameter_gradients.begin(),
                                 rest.parameter_gradients.begin() + static_cast<std::ptrdiff_t>(before));
  return rest;
}

}  // namespace

std::vector<ChainPart> parts_of(const Task& task, const std::string& kernels) {
  std::vector<ChainPart> parts;
  for (Task rest = task;;) {
    size_t layers = rest.layers.size();
    Task front = rest;
    Selection selection = select_kernel(front, kernels);
    // Do as the Executor does: the reference would run the chain layer by layer, and gain nothing.
    while (layers > 1 && selection.implementation == "reference") {
      front = front_of(rest, --layers);
      selection = select_kernel(front, kernels);
    }
    parts.push_back({std::move(front), std::move(selection)});
    if (layers == rest.layers.size()) return parts;
    rest = rest_of(rest, layers);
  }
}

PassTimes time_task(const Task& task, const std::string& kernels, int most_runs,
                    device::DeviceRuntime& device) {
  PassTimes times;
  if (task.layer().writes_files() || task.layer().depends_on_values()) return times;
  for (const ChainPart& part : parts_of(task, kernels)) {
    if (!device.runs_host_functions() && !part.selection.for_gpu)
      throw UserError(
          fmt::format("there are no {} kernels for layers of type {}; give their ranks another "
                      "device",
                      gpu_kernels, part.task.layer().type()));
    const PassTimes one = Stage(part.task, *part.selection.kernel, device).run(most_runs);
    times.forward += one.forward;
    times.backward_weights += one.backward_weights;
    times.backward += one.backward;
  }
  return times;
}

}  // namespace cortado
