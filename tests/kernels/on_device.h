#pragma once

#include <algorithm>
#include <functional>

#include "cortado/device/host_view.h"
#include "cortado/device/memory.h"
#include "cortado/device/runtime.h"
#include "cortado/kernels/forwarding_kernel.h"
#include "cortado/layers/task.h"

#include "tests/kernels/cut_run.h"

namespace cortado::check {

// A kernel of a device, to be run over memory of the host: each call copies all that its arguments name to
// the device and back. Parameters lie in the order of files.
class OnDevice : public ForwardingKernel {
 public:
  OnDevice(std::unique_ptr<Kernel> inner, const Task& task, device::DeviceRuntime& device)
      : ForwardingKernel(std::move(inner)), task_(task), device_(device) {}
  void forward(const Arguments& a) override { run(a, &Kernel::forward); }
  void backward(const Arguments& a) override { run(a, &Kernel::backward); }
  void backward_weights(const Arguments& a) override { run(a, &Kernel::backward_weights); }
  void forward_partial(const Arguments& a) override { run(a, &Kernel::forward_partial); }
  void backward_partial(const Arguments& a) override { run(a, &Kernel::backward_partial); }

 private:
  struct Copy {
    std::byte* host;
    device::Memory there;
  };

  template <typename T>
  void move(T*& pointer, int64_t bytes, std::vector<Copy>& copies) {
    if (pointer == nullptr) return;
    auto* const host = reinterpret_cast<std::byte*>(const_cast<std::remove_const_t<T>*>(pointer));
    // Two arguments may be one memory.
    auto copy = std::ranges::find(copies, host, &Copy::host);
    if (copy == copies.end()) {
      copies.push_back({host, device::Memory({bytes}, device_)});
      copy = copies.end() - 1;
      device_.queue().copy_in(copy->there.data(), host, {bytes});
    }
    pointer = device_.for_kernels(reinterpret_cast<T*>(copy->there.data()));
  }
  template <typename T, typename TypeOf>
  void move_all(std::vector<T*>& pointers, const std::vector<Box>& boxes, std::vector<Copy>& copies,
                TypeOf&& type_of) {
    for (size_t i = 0; i < pointers.size(); ++i)
      move(pointers[i], bytes_of(boxes[i].shape().size(), type_of(static_cast<int>(i))).count, copies);
  }

  void run(const Arguments& given, void (Kernel::*pass)(const Arguments&)) {
    Arguments a = given;
    std::vector<Copy> copies;
    const auto of_input = [&](int i) { return task_.input_type(i); };
    const auto of_output = [&](int i) { return task_.output_type(i); };
    const auto of_parameter = [](int) { return ElementType::f32; };
    move_all(a.inputs, task_.input_boxes, copies, of_input);
    move_all(a.outputs, task_.output_boxes, copies, of_output);
    move_all(a.output_gradients, task_.output_boxes, copies, of_output);
    move_all(a.input_gradients, task_.input_boxes, copies, of_input);
    move_all(a.parameters, parameter_boxes(task_), copies, of_parameter);
    move_all(a.parameter_gradients, parameter_boxes(task_), copies, of_parameter);
    move(a.saved, inner().saved_bytes().count, copies);
    move(a.scratch, inner().scratch_bytes().count, copies);
    const int64_t sums = std::max(inner().forward_sums(), inner().backward_sums());
    move(a.sums, sums * int64_t{sizeof(double)}, copies);
    a.stream = device_.queue().stream();
    device_.queue().launch([&] { (inner().*pass)(a); });
    for (const Copy& copy : copies) device_.queue().copy_out(copy.host, copy.there.data(), copy.there.size());
    device_.queue().finish();
  }

  const Task& task_;
  device::DeviceRuntime& device_;
};

}  // namespace cortado::check
