#include "tests/kernels/buffers.h"

#include <cmath>

namespace cortado::check {
namespace {

double draw(const RandomStream& stream, int64_t index, const Values& values, DataKind data) {
  if (data == DataKind::small_integers && !values.integers) {
    return std::floor(stream.uniform(index, 0, -3, 4));
  }
  double value = stream.uniform(index, 0, values.low, values.high);
  return values.integers ? std::floor(value) : value;
}

template <typename T>
std::vector<T> drawn(const RandomStream& stream, int64_t size, const Values& values, DataKind data) {
  std::vector<T> result(size);
  for (int64_t i = 0; i < size; ++i) result[i] = draw(stream, i, values, data);
  return result;
}

template <typename T>
std::vector<Buffer<T>> buffers_of(const std::vector<std::vector<T>>& values) {
  std::vector<Buffer<T>> buffers;
  for (const auto& each : values) buffers.emplace_back(each);
  return buffers;
}

template <typename T>
std::vector<Buffer<T>> unwritten_like(const std::vector<std::vector<T>>& values) {
  std::vector<Buffer<T>> buffers;
  for (const auto& each : values) buffers.emplace_back(static_cast<int64_t>(each.size()));
  return buffers;
}

}  // namespace

RandomStream check_stream(const CheckOptions& options, std::string_view what) {
  return {.seed = options.seed, .iteration = 0, .owner = RandomStream::owner_of(what)};
}

template <typename T>
std::vector<T> input_values(const Task& task, int input, const CheckOptions& options) {
  Values values = input < static_cast<int>(options.inputs.size()) ? options.inputs[input] : Values{};
  RandomStream stream = check_stream(options, "input " + std::to_string(input));
  return drawn<T>(stream, task.local_input(input).size(), values, options.data);
}

template <typename T>
TaskData<T>::TaskData(const Task& task, const CheckOptions& options) {
  for (size_t i = 0; i < task.inputs.size(); ++i) inputs.push_back(input_values<T>(task, i, options));
  for (size_t i = 0; i < task.outputs.size(); ++i) {
    RandomStream stream = check_stream(options, "gradient " + std::to_string(i));
    output_gradients.push_back(drawn<T>(stream, task.local_output(i).size(), {}, options.data));
    bool used = i >= options.objective.size() || options.objective[i];
    if (!used) std::fill(output_gradients.back().begin(), output_gradients.back().end(), T{0});
  }
  for (const ParameterSpec& spec : task_parameters(task)) {
    RandomStream stream = check_stream(options, "parameter " + std::to_string(parameters.size()));
    // Running statistics are positive and not integers: variances and their common factor.
    Values values = spec.learnable ? Values{} : Values{.low = 0.5, .high = 1.5};
    DataKind data = spec.learnable ? options.data : DataKind::random;
    parameters.push_back(drawn<T>(stream, spec.shape.size(), values, data));
  }
}

template <typename T>
TaskBuffers<T>::TaskBuffers(const Task& task, const KernelOf<T>& kernel, const TaskData<T>& data)
    : inputs(buffers_of(data.inputs)),
      outputs(unwritten_like(data.output_gradients)),
      output_gradients(buffers_of(data.output_gradients)),
      input_gradients(unwritten_like(data.inputs)),
      parameters(buffers_of(data.parameters)),
      parameter_gradients(unwritten_like(data.parameters)),
      saved(kernel.saved_bytes().count),
      scratch(kernel.scratch_bytes().count),
      task_(task) {}

template <typename T>
ArgumentsOf<T> TaskBuffers<T>::arguments() {
  ArgumentsOf<T> result{.saved = saved.data(), .scratch = scratch.data()};
  result.random = {.seed = 7, .iteration = 3, .owner = RandomStream::owner_of("layer")};
  for (auto& each : inputs) result.inputs.push_back(each.data());
  for (auto& each : outputs) result.outputs.push_back(each.data());
  for (auto& each : parameters) result.parameters.push_back(each.data());
  for (auto& each : output_gradients) result.output_gradients.push_back(each.data());
  for (size_t i = 0; i < input_gradients.size(); ++i) {
    result.input_gradients.push_back(task_.input_gradients[i] ? input_gradients[i].data() : nullptr);
  }
  for (size_t i = 0; i < parameter_gradients.size(); ++i) {
    result.parameter_gradients.push_back(task_.parameter_gradients[i] ? parameter_gradients[i].data()
                                                                      : nullptr);
  }
  return result;
}

template std::vector<float> input_values<float>(const Task&, int, const CheckOptions&);
template std::vector<double> input_values<double>(const Task&, int, const CheckOptions&);
template struct TaskData<float>;
template struct TaskData<double>;
template class TaskBuffers<float>;
template class TaskBuffers<double>;

}  // namespace cortado::check
