#pragma once

#include <cstdint>
#include <vector>

#include "cortado/kernels/lowering/blas.h"

#include "bench/square_convolution.h"

namespace cortado {

// A convolution as BVLC Caffe 1.0 computes it on a processor (Jia et al. 2014; base_conv_layer.cpp and
// im2col.cpp of its sources say in which order): tensors are N x C x H x W; images go one after the other;
// each is lowered by im2col on one thread, and multiplied by OpenBLAS on all, a group at a time. A 1x1 window
// of stride 1 is not lowered. The bias is a product of depth 1. Backward, the bias's gradient of all images
// comes first; then each image is lowered again for the weights' gradient, and lifted by col2im for the
// input's.
class CaffeConvolution {
 public:
  explicit CaffeConvolution(const SquareConvolution& sizes)
      : sizes_(sizes),
        places_(sizes.out() * sizes.out()),
        depth_(sizes.channels / sizes.group * sizes.kernel * sizes.kernel),
        ones_(static_cast<size_t>(places_), 1.0f) {
    if (!is_1x1()) columns_.resize(static_cast<size_t>(sizes.group * depth_ * places_));
  }

  int64_t input_elements() const { return sizes_.channels * sizes_.extent * sizes_.extent; }  // of an image
  int64_t output_elements() const { return sizes_.outputs * places_; }
  int64_t weight_elements() const { return sizes_.outputs * depth_; }

  void forward(const float* x, const float* weight, const float* bias, float* y) {
    for (int64_t n = 0; n < sizes_.batch; ++n) {
      float* out = y + n * output_elements();
      const float* columns = lowered(x + n * input_elements());
      for (int64_t g = 0; g < sizes_.group; ++g)
        product(outputs(), places_, depth_, {weight + g * outputs() * depth_, depth_},
                {columns + g * depth_ * places_, places_}, 0, out + g * outputs() * places_);
      product(sizes_.outputs, places_, 1, {bias, 1}, {ones_.data(), places_}, 1, out);
    }
  }

  // Adds to the gradients of the parameters, which Caffe's solver sets to 0 before. `dx`: null where none is
  // wanted.
  void backward(const float* x, const float* weight, const float* dy, float* dweight, float* dbias,
                float* dx) {
    for (int64_t n = 0; n < sizes_.batch; ++n)
      product(sizes_.outputs, 1, places_, {dy + n * output_elements(), places_}, {ones_.data(), 1}, 1, dbias);
    for (int64_t n = 0; n < sizes_.batch; ++n) {
      const float* gradient = dy + n * output_elements();
      add_weight_gradient(lowered(x + n * input_elements()), gradient, dweight);
      if (dx) input_gradient(weight, gradient, dx + n * input_elements());
    }
  }

 private:
  bool is_1x1() const { return sizes_.kernel == 1 && sizes_.stride == 1 && sizes_.pad == 0; }
  int64_t outputs() const { return sizes_.outputs / sizes_.group; }  // of a group

  static void product(int64_t rows, int64_t columns, int64_t depth, lowering::Factor a, lowering::Factor b,
                      float beta, float* to) {
    lowering::multiply(lowering::Blas::openblas, rows, columns, depth, a, b, beta, to, columns);
  }

  void add_weight_gradient(const float* columns, const float* gradient, float* dweight) {
    for (int64_t g = 0; g < sizes_.group; ++g)
      product(outputs(), depth_, places_, {gradient + g * outputs() * places_, places_},
              {columns + g * depth_ * places_, places_, true}, 1, dweight + g * outputs() * depth_);
  }

  void input_gradient(const float* weight, const float* gradient, float* dx) {
    float* columns = is_1x1() ? dx : columns_.data();
    for (int64_t g = 0; g < sizes_.group; ++g)
      product(depth_, places_, outputs(), {weight + g * outputs() * depth_, depth_, true},
              {gradient + g * outputs() * places_, places_}, 0, columns + g * depth_ * places_);
    if (is_1x1()) return;
    for (int64_t i = 0; i < input_elements(); ++i) dx[i] = 0;
    each_row(
        dx, columns, [](float& image, float& column) { image += column; }, [](float&) {});
  }

  const float* lowered(const float* image) {
    if (is_1x1()) return image;
    each_row(
        image, columns_.data(), [](float value, float& column) { column = value; },
        [](float& column) { column = 0; });
    return columns_.data();
  }

  // im2col's and col2im's loops: channels, rows and columns of the window, then rows and columns of the
  // output.
  template <typename Image, typename Inside, typename Outside>
  void each_row(Image* image, float* columns, Inside&& inside, Outside&& outside) {
    const int64_t extent = sizes_.extent, out = sizes_.out();
    for (int64_t c = 0; c < sizes_.channels; ++c, image += extent * extent)
      for (int64_t kh = 0; kh < sizes_.kernel; ++kh)
        for (int64_t kw = 0; kw < sizes_.kernel; ++kw)
          for (int64_t h = 0, row = kh - sizes_.pad; h < out; ++h, row += sizes_.stride)
            for (int64_t w = 0, column = kw - sizes_.pad; w < out; ++w, column += sizes_.stride, ++columns) {
              const bool within = row >= 0 && row < extent && column >= 0 && column < extent;
              within ? inside(image[row * extent + column], *columns) : outside(*columns);
            }
  }

  const SquareConvolution sizes_;
  const int64_t places_, depth_;  // of an output channel; of a window of a group
  std::vector<float> columns_, ones_;
};

}  // namespace cortado
