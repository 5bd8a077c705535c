#include <vector>

#include "cortado/kernels/reference/reference.h"
#include "cortado/kernels/reference/view.h"
#include "cortado/layers/deconvolution.h"

namespace cortado {
namespace {

// The pairs that convolution and deconvolution multiply. Both join a tensor of windows (convolution's output,
// deconvolution's input) with an image through the weight [window channel, image channel in group,
// kernel...].
class WindowPairs {
 public:
  WindowPairs(const ConvolutionOptions& options, const Shape& windows, const Box& windows_box,
              const Shape& image, const Box& image_box)
      : window(options.resolve(image.rank())),
        windows(tensor_place(windows_box)),
        image(tensor_place(image_box)),
        weight(parameter_place(weight_box(options, window, windows_box, image, image_box))),
        windows_each_(windows[1] / options.group),
        image_each_(image[1] / options.group) {}

  // Calls work(windows offset, image offset, weight offset, channels) for each window and kernel element
  // inside the image: `channels` image channels from those offsets on.
  template <typename Work>
  void visit(Work&& work) const {
    Box taps = weight.box();
    taps[0] = taps[1] = {0, 1};
    for_each_index(windows.box(), [&](const Index& at) {
      int64_t group = at[1] / windows_each_;
      int64_t first = std::max(group * image_each_, image.box()[1].begin);
      int64_t last = std::min((group + 1) * image_each_, image.box()[1].end);
      if (first >= last) return;
      for_each_index(taps, [&](const Index& tap) {
        Index pixel{at[0], first}, factor = tap;
        for (size_t i = 0; i < window.size(); ++i) {
          pixel[i + 2] = window[i].first(at[i + 2]) + tap[i + 2] * window[i].dilation;
          const Range& inside = image.box()[i + 2];
          if (pixel[i + 2] < inside.begin || pixel[i + 2] >= inside.end) return;
        }
        factor[0] = at[1];
        factor[1] = first - group * image_each_;
        work(windows(at), image(pixel), weight(factor), last - first);
      });
    });
  }

  Window window;
  Place windows, image, weight;

 private:
  static Box weight_box(const ConvolutionOptions& options, const Window& window, const Box& windows_box,
                        const Shape& image, const Box& image_box) {
    Shape shape{windows_box[1].size(), image[1] / options.group};
    for (const WindowAxis& axis : window) shape.append(axis.kernel);
    Box box = Box::whole(shape);
    box[0] = windows_box[1];
    if (options.group == 1) box[1] = image_box[1];
    return box;
  }

  int64_t windows_each_, image_each_;
};

// windows += weight * image
template <typename T>
void gather(const WindowPairs& pairs, const T* image, const T* weight, std::vector<double>& windows) {
  int64_t image_step = pairs.image.stride(1), weight_step = pairs.weight.stride(1);
  pairs.visit([&](int64_t w, int64_t i, int64_t f, int64_t channels) {
    double sum = 0;
    for (int64_t c = 0; c < channels; ++c) {
      sum += static_cast<double>(image[i + c * image_step]) * weight[f + c * weight_step];
    }
    windows[w] += sum;
  });
}

// image += weight * windows
template <typename T>
void spread(const WindowPairs& pairs, const T* windows, const T* weight, std::vector<double>& image) {
  int64_t image_step = pairs.image.stride(1), weight_step = pairs.weight.stride(1);
  pairs.visit([&](int64_t w, int64_t i, int64_t f, int64_t channels) {
    for (int64_t c = 0; c < channels; ++c) {
      image[i + c * image_step] += static_cast<double>(windows[w]) * weight[f + c * weight_step];
    }
  });
}

// weight += windows * image
template <typename T>
void correlate(const WindowPairs& pairs, const T* windows, const T* image, std::vector<double>& weight) {
  int64_t image_step = pairs.image.stride(1), weight_step = pairs.weight.stride(1);
  pairs.visit([&](int64_t w, int64_t i, int64_t f, int64_t channels) {
    for (int64_t c = 0; c < channels; ++c) {
      weight[f + c * weight_step] += static_cast<double>(windows[w]) * image[i + c * image_step];
    }
  });
}

enum class Direction { convolution, deconvolution };

template <typename T>
class ConvolutionReference : public KernelOf<T> {
 public:
  ConvolutionReference(const ConvolutionOptions& options, const Task& task, Direction direction)
      : convolution_(direction == Direction::convolution),
        bias_term_(options.bias_term),
        pairs_(convolution_ ? WindowPairs(options, task.outputs[0], task.output_boxes[0], task.inputs[0],
                                          task.input_boxes[0])
                            : WindowPairs(options, task.inputs[0], task.input_boxes[0], task.outputs[0],
                                          task.output_boxes[0])) {}

  std::string name() const override { return "reference"; }
  BackwardReads backward_reads() const override { return {.inputs = true, .outputs = false}; }

  void forward(const ArgumentsOf<T>& a) override {
    std::vector<double> sums(output().size());
    if (bias_term_) {
      for_each_index(output().box(),
                     [&](const Index& index) { sums[output()(index)] = a.parameters[1][channel(index)]; });
    }
    apply(convolution_, a.inputs[0], a.parameters[0], sums);
    std::copy(sums.begin(), sums.end(), a.outputs[0]);
  }

  void backward(const ArgumentsOf<T>& a) override {
    if (!a.input_gradients[0]) return;
    std::vector<double> sums(input().size());
    apply(!convolution_, a.output_gradients[0], a.parameters[0], sums);
    std::copy(sums.begin(), sums.end(), a.input_gradients[0]);
  }

  void backward_weights(const ArgumentsOf<T>& a) override {
    if (a.parameter_gradients[0]) {
      std::vector<double> sums(pairs_.weight.size());
      const T* windows = convolution_ ? a.output_gradients[0] : a.inputs[0];
      const T* image = convolution_ ? a.inputs[0] : a.output_gradients[0];
      correlate(pairs_, windows, image, sums);
      std::copy(sums.begin(), sums.end(), a.parameter_gradients[0]);
    }
    if (bias_term_ && a.parameter_gradients[1]) {
      std::vector<double> sums(output().box()[1].size());
      for_each_index(output().box(), [&](const Index& index) {
        sums[channel(index)] += a.output_gradients[0][output()(index)];
      });
      std::copy(sums.begin(), sums.end(), a.parameter_gradients[1]);
    }
  }

 private:
  const Place& input() const { return convolution_ ? pairs_.image : pairs_.windows; }
  const Place& output() const { return convolution_ ? pairs_.windows : pairs_.image; }
  int64_t channel(const Index& index) const { return index[1] - output().box()[1].begin; }
  void apply(bool gathers, const T* from, const T* weight, std::vector<double>& to) const {
    gathers ? gather(pairs_, from, weight, to) : spread(pairs_, from, weight, to);
  }

  bool convolution_, bias_term_;
  WindowPairs pairs_;
};

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_convolution_reference(const Task& task) {
  const auto& layer = dynamic_cast<const Convolution&>(task.layer());
  return std::make_unique<ConvolutionReference<T>>(layer.options(), task, Direction::convolution);
}

template <typename T>
std::unique_ptr<KernelOf<T>> make_deconvolution_reference(const Task& task) {
  const auto& layer = dynamic_cast<const Deconvolution&>(task.layer());
  return std::make_unique<ConvolutionReference<T>>(layer.options(), task, Direction::deconvolution);
}

template std::unique_ptr<KernelOf<float>> make_convolution_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_convolution_reference<double>(const Task&);
template std::unique_ptr<KernelOf<float>> make_deconvolution_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_deconvolution_reference<double>(const Task&);

}  // namespace cortado
