// Every layer that PyTorch has too computes what PyTorch computed (make_layer_goldens.py).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "cortado/kernels/kernel.h"
#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/select.h"
#include "cortado/net/declare_net.h"
#include "cortado/net/net_file.h"
#include "cortado/net/read_net.h"
#include "cortado/train/safetensors.h"

namespace cortado {
namespace {

struct GoldenCase {
  std::string name;
  std::string layer;  // the fields of its prototxt
  Phase phase;
  std::vector<std::string> parameters;  // roles, in the layer's order
};

void PrintTo(const GoldenCase& test, std::ostream* out) { *out << test.name; }

const SafetensorsFile& golden_file() {
  static const SafetensorsFile file = read_safetensors(CORTADO_SOURCE_DIR "/tests/golden/layers.safetensors");
  return file;
}

std::vector<GoldenCase> golden_cases() {
  std::vector<GoldenCase> cases;
  for (const nlohmann::json& entry : nlohmann::json::parse(golden_file().metadata.at("cases"))) {
    cases.push_back({entry.at("name"), entry.at("layer"),
                     entry.at("phase") == "TRAIN" ? Phase::train : Phase::test, entry.at("parameters")});
  }
  return cases;
}

const SafetensorsFile::Tensor* golden(const GoldenCase& test, const std::string& role) {
  return golden_file().find(test.name + "/" + role);
}

Task golden_task(const GoldenCase& test) {
  std::vector<Shape> inputs;
  std::string text = "layer { name: \"" + test.name + "\" top: \"output0\" " + test.layer;
  while (const auto* input = golden(test, "input" + std::to_string(inputs.size()))) {
    text += " bottom: \"input" + std::to_string(inputs.size()) + "\"";
    inputs.push_back(input->shape);
  }
  NetFile file = parse_net(text + " }", test.name);
  LayerPtr layer = declare_net(file, net_state(test.phase)).layers.at(0).layer;
  return whole_task(layer, test.phase, inputs, 1);
}

// Memory as the arena gives it: aligned to 64 bytes, filled with bytes that make every float a NaN.
template <typename T>
class Buffer {
 public:
  explicit Buffer(int64_t elements)
      : memory_(static_cast<T*>(std::aligned_alloc(64, (elements * sizeof(T) + 127) / 64 * 64)), &std::free) {
    std::memset(memory_.get(), 0xff, elements * sizeof(T));
  }
  T* data() { return memory_.get(); }

 private:
  std::unique_ptr<T[], void (*)(void*)> memory_;
};

// The offset in a channels-last tensor of each element in row-major order.
std::vector<int64_t> channels_last_offsets(const Shape& shape) {
  Strides from = row_major_strides(shape), to = channels_last_strides(shape);
  std::vector<int64_t> offsets(shape.size());
  for (int64_t i = 0; i < shape.size(); ++i) {
    int64_t rest = i;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      offsets[i] += rest / from[axis] * to[axis];
      rest %= from[axis];
    }
  }
  return offsets;
}

template <typename T>
Buffer<T> channels_last(const SafetensorsFile::Tensor& tensor) {
  Buffer<T> buffer(tensor.shape.size());
  std::vector<int64_t> offsets = channels_last_offsets(tensor.shape);
  for (size_t i = 0; i < offsets.size(); ++i) buffer.data()[offsets[i]] = tensor.values[i];
  return buffer;
}

// Parameters in the kernel's own order; kernels of double keep the file's.
template <typename T>
Buffer<T> own_order(const ParameterFormat& format, const std::vector<float>& canonical) {
  Buffer<T> buffer(std::max<int64_t>(format.elements, canonical.size()));
  if constexpr (std::is_same_v<T, float>) {
    if (format.from_canonical) {
      format.from_canonical(canonical.data(), buffer.data());
      return buffer;
    }
  }
  std::copy(canonical.begin(), canonical.end(), buffer.data());
  return buffer;
}

template <typename T>
std::vector<T> canonical_order(const ParameterFormat& format, T* own, size_t count) {
  std::vector<T> canonical(count);
  if constexpr (std::is_same_v<T, float>) {
    if (format.to_canonical) {
      format.to_canonical(own, canonical.data());
      return canonical;
    }
  }
  std::copy(own, own + count, canonical.begin());
  return canonical;
}

// Each element within 1e-5 of the tensor's largest magnitude, or of 1 where that is less.
template <typename T>
void expect_near(const std::string& what, const T* values, const std::vector<int64_t>& offsets,
                 const std::vector<float>& expected) {
  double scale = 1, worst = 0;
  for (float value : expected) scale = std::max<double>(scale, std::abs(value));
  for (size_t i = 0; i < expected.size(); ++i) {
    double difference = std::abs(static_cast<double>(values[offsets[i]]) - expected[i]);
    worst = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(worst, difference);
  }
  EXPECT_LE(worst, 1e-5 * scale) << what;
}

// One kernel's run on a golden case.
template <typename T>
class GoldenRun {
 public:
  GoldenRun(const GoldenCase& test, const Task& task, KernelOf<T>& kernel)
      : test_(test),
        task_(task),
        kernel_(kernel),
        output_(task.outputs[0].size()),
        saved_(kernel.saved_bytes().count),
        scratch_(kernel.scratch_bytes().count) {
    bind_inputs();
    bind_parameters();
    arguments_.outputs = {output_.data()};
    arguments_.saved = reinterpret_cast<std::byte*>(saved_.data());
    arguments_.scratch = reinterpret_cast<std::byte*>(scratch_.data());
    arguments_.random.seed = 1;
  }

  void check() {
    kernel_.forward(arguments_);
    expect_tensor("output0", output_.data());
    for (size_t i = 0; i < test_.parameters.size(); ++i) {
      std::string after = test_.parameters[i] + "_after";
      if (golden(test_, after)) expect_parameter(after, i, arguments_.parameters[i]);
    }
    if (!task_.has_backward()) return;
    Buffer<T> output_gradient = channels_last<T>(*golden(test_, "output0_gradient"));
    arguments_.output_gradients = {output_gradient.data()};
    if (task_.layer().splits_backward()) kernel_.backward_weights(arguments_);
    kernel_.backward(arguments_);
    for (size_t i = 0; i < task_.inputs.size(); ++i) {
      if (task_.input_gradients[i]) {
        expect_tensor("input" + std::to_string(i) + "_gradient", arguments_.input_gradients[i]);
      }
    }
    for (size_t i = 0; i < test_.parameters.size(); ++i) {
      if (!task_.parameter_gradients[i]) continue;
      expect_parameter(test_.parameters[i] + "_gradient", i, arguments_.parameter_gradients[i]);
    }
  }

 private:
  void bind_inputs() {
    for (size_t i = 0; i < task_.inputs.size(); ++i) {
      buffers_.push_back(channels_last<T>(*golden(test_, "input" + std::to_string(i))));
      arguments_.inputs.push_back(buffers_.back().data());
      buffers_.emplace_back(task_.inputs[i].size());
      arguments_.input_gradients.push_back(task_.input_gradients[i] ? buffers_.back().data() : nullptr);
    }
  }

  void bind_parameters() {
    for (size_t i = 0; i < test_.parameters.size(); ++i) {
      const std::vector<float>& values = golden(test_, test_.parameters[i])->values;
      ParameterFormat format = kernel_.parameter_format(static_cast<int>(i));
      buffers_.push_back(own_order<T>(format, values));
      arguments_.parameters.push_back(buffers_.back().data());
      buffers_.emplace_back(std::max<int64_t>(format.elements, values.size()));
      arguments_.parameter_gradients.push_back(task_.parameter_gradients[i] ? buffers_.back().data()
                                                                            : nullptr);
    }
  }

  void expect_tensor(const std::string& role, const T* values) {
    const SafetensorsFile::Tensor* expected = golden(test_, role);
    ASSERT_NE(expected, nullptr) << role;
    expect_near(role, values, channels_last_offsets(expected->shape), expected->values);
  }

  void expect_parameter(const std::string& role, size_t index, T* own) {
    const SafetensorsFile::Tensor* expected = golden(test_, role);
    ASSERT_NE(expected, nullptr) << role;
    std::vector<T> values =
        canonical_order(kernel_.parameter_format(static_cast<int>(index)), own, expected->values.size());
    std::vector<int64_t> in_order(values.size());
    for (size_t i = 0; i < in_order.size(); ++i) in_order[i] = static_cast<int64_t>(i);
    expect_near(role, values.data(), in_order, expected->values);
  }

  const GoldenCase& test_;
  const Task& task_;
  KernelOf<T>& kernel_;
  ArgumentsOf<T> arguments_;
  Buffer<T> output_;
  Buffer<char> saved_, scratch_;
  std::vector<Buffer<T>> buffers_;
};

class Golden : public testing::TestWithParam<GoldenCase> {
 protected:
  Task task_ = golden_task(GetParam());
};

TEST_P(Golden, HasTheParametersOfTheCase) {
  std::vector<ParameterSpec> specs = task_.layer().parameters(task_.inputs);
  ASSERT_EQ(specs.size(), GetParam().parameters.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    EXPECT_EQ(specs[i].shape, golden(GetParam(), GetParam().parameters[i])->shape);
  }
  EXPECT_EQ(task_.outputs[0], golden(GetParam(), "output0")->shape);
}

TEST_P(Golden, ReferenceOfDoubleEqualsPyTorch) {
  auto kernel = make_reference_kernel<double>(task_);
  GoldenRun<double>(GetParam(), task_, *kernel).check();
}

TEST_P(Golden, ReferenceEqualsPyTorch) {
  auto kernel = make_reference_kernel<float>(task_);
  GoldenRun<float>(GetParam(), task_, *kernel).check();
}

TEST_P(Golden, SelectedKernelEqualsPyTorch) {
  Selection selection = select_kernel(task_);
  SCOPED_TRACE(selection.kernel->name());
  GoldenRun<float>(GetParam(), task_, *selection.kernel).check();
}

std::string case_name(const testing::TestParamInfo<GoldenCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Layers, Golden, testing::ValuesIn(golden_cases()), case_name);

}  // namespace
}  // namespace cortado
