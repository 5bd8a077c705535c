#include <fmt/format.h>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"
#include "cortado/layers/convolution.h"

#include "tests/kernels/buffers.h"

namespace cortado::check {
namespace {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

constexpr int boxes_per_output = 12;
constexpr double face_value = 1e3;  // what a face is set to: no maximum hides it

Box random_box(const Shape& shape, const RandomStream& stream, uint64_t number) {
  Box box = Box::whole(shape);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    int64_t begin = stream.bits(number, 2 * axis) % shape[axis];
    box[axis] = {begin, begin + 1 + stream.bits(number, 2 * axis + 1) % (shape[axis] - begin)};
  }
  return box;
}

// The layer computed whole, so that values of a box can be compared before and after a change of an input.
class WholeLayer {
 public:
  WholeLayer(const Task& task, const CheckOptions& options)
      : task_(task), data_(task, options), kernel_(make_reference_kernel<double>(task)) {
    original_ = outputs_with(data_.inputs);
  }

  bool changes(int input, const std::vector<double>& values, int output, const Box& box) {
    auto inputs = data_.inputs;
    inputs[input] = values;
    auto outputs = outputs_with(inputs);
    Place place = tensor_place(Box::whole(task_.outputs[output]));
    bool changed = false;
    for_each_index(box, [&](const Index& index) {
      changed = changed || outputs[output][place(index)] != original_[output][place(index)];
    });
    return changed;
  }
  const std::vector<double>& input(int i) const { return data_.inputs[i]; }

 private:
  std::vector<std::vector<double>> outputs_with(const std::vector<std::vector<double>>& inputs) {
    TaskBuffers<double> buffers(task_, *kernel_, data_);
    for (size_t i = 0; i < inputs.size(); ++i) buffers.inputs[i].set(inputs[i]);
    kernel_->forward(buffers.arguments());
    std::vector<std::vector<double>> outputs;
    for (const auto& each : buffers.outputs) outputs.push_back(each.values());
    return outputs;
  }

  Task task_;
  TaskData<double> data_;
  std::unique_ptr<KernelOf<double>> kernel_;
  std::vector<std::vector<double>> original_;
};

AssertionResult outside_is_not_read(WholeLayer& layer, const Task& task, int input, const Box& read,
                                    int output, const Box& box, const std::vector<double>& others) {
  std::vector<double> values = others;
  Place place = tensor_place(Box::whole(task.inputs[input]));
  for_each_index(read, [&](const Index& index) { values[place(index)] = layer.input(input)[place(index)]; });
  if (!layer.changes(input, values, output, box)) return AssertionSuccess();
  return AssertionFailure() << fmt::format("box {} of output {} reads input {} outside {}", box.text(),
                                           output, input, read.text());
}

// A convolution has the whole of an axis whose windows it has all.
bool has_whole_axis(const Task& task, int input, int output, const Box& box, int axis) {
  return axis >= 2 && dynamic_cast<const Convolution*>(&task.layer()) &&
         box[axis] == Range{0, task.outputs[output][axis]} && task.inputs[input].rank() == box.rank();
}

AssertionResult faces_are_read(WholeLayer& layer, const Task& task, int input, const Box& read, int output,
                               const Box& box) {
  Place place = tensor_place(Box::whole(task.inputs[input]));
  for (int side = 0; side < 2 * read.rank(); ++side) {
    Box face = read;
    int axis = side / 2;
    if (has_whole_axis(task, input, output, box, axis)) continue;
    face[axis] =
        side % 2 ? Range{read[axis].end - 1, read[axis].end} : Range{read[axis].begin, read[axis].begin + 1};
    std::vector<double> values = layer.input(input);
    for_each_index(face, [&](const Index& index) { values[place(index)] = face_value; });
    if (layer.changes(input, values, output, box)) continue;
    return AssertionFailure() << fmt::format("box {} of output {} does not read {} of input {}, a face of {}",
                                             box.text(), output, face.text(), input, read.text());
  }
  return AssertionSuccess();
}

}  // namespace

AssertionResult input_boxes_hold(const Layer& layer, const Task& task, bool tight,
                                 const CheckOptions& options) {
  WholeLayer whole(task, options);
  RandomStream stream = check_stream(options, "boxes");
  CheckOptions other = options;
  other.seed += 1;
  for (int output = 0; output < static_cast<int>(task.outputs.size()); ++output) {
    for (int number = 0; number < boxes_per_output; ++number) {
      Box box = random_box(task.outputs[output], stream, number);
      for (int input = 0; input < static_cast<int>(task.inputs.size()); ++input) {
        Box read = layer.input_box(task.inputs, input, output, box);
        if (!Box::whole(task.inputs[input]).contains(read)) {
          return AssertionFailure() << fmt::format("input box {} leaves the tensor {}", read.text(),
                                                   task.inputs[input].text());
        }
        auto others = input_values<double>(task, input, other);
        auto result = outside_is_not_read(whole, task, input, read, output, box, others);
        if (!result) return result;
        if (!tight || read.empty()) continue;
        if (auto faces = faces_are_read(whole, task, input, read, output, box); !faces) return faces;
      }
    }
  }
  return AssertionSuccess();
}

}  // namespace cortado::check
