#pragma once

#include <random>

#include "cortado/layers/batch_norm.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/concat.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/dropout.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/lrn.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/prelu.h"
#include "cortado/layers/scale.h"
#include "cortado/layers/slice.h"
#include "cortado/layers/softmax_loss.h"
#include "cortado/layers/source.h"
#include "cortado/net/network.h"

#include "tests/program/nets.h"

namespace cortado::testing {

constexpr int classes = 5;

// Draws a small classifier of images or volumes in which every kind of layer that can be cut occurs.
class RandomLayersNet {
 public:
  // `batch`: samples; 0: a few.
  explicit RandomLayersNet(uint32_t seed, int batch = 0) : random_(seed), batch_(batch) {}

  Network build() {
    const int axes = pick(0, 4) == 0 ? 3 : pick(0, 5) == 0 ? 1 : 2;
    const int few = pick(2, 6);
    Shape images{batch_ > 0 ? batch_ : few, pick(1, 4)};
    for (int i = 0; i < axes; ++i) images.append(axes == 3 ? pick(4, 7) : pick(7, 13));
    SourceOptions options;
    options.kind = SourceOptions::Kind::input;
    options.shapes = {images, Shape{images[0]}};
    add("data", std::make_shared<Source>(options), {}, {"data", "label"});
    blobs_ = {{"data", images}};
    const int layers = pick(3, 8);
    for (int i = 0; i < layers; ++i) draw_layer();
    finish();
    return built(declarations_);
  }

 private:
  struct Blob {
    std::string name;
    Shape shape;
  };

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  void add(const std::string& name, LayerPtr layer, std::vector<std::string> bottoms,
           std::vector<std::string> tops) {
    declarations_.push_back(declared(name, std::move(layer), std::move(bottoms), std::move(tops)));
  }

  // A layer of one input and one output, whose top becomes a blob.
  void append(LayerPtr layer, const Blob& bottom) {
    const std::string name = "x" + std::to_string(declarations_.size()) + "_" + std::string(layer->type());
    const Shape shape = layer->output_shapes({&bottom.shape, 1}, 1)[0];
    add(name, std::move(layer), {bottom.name}, {name});
    blobs_.push_back({name, shape});
  }

  // Picks one of the last few, so that nets are deep.
  Blob any() {
    const int count = static_cast<int>(blobs_.size());
    return blobs_[static_cast<size_t>(pick(std::max(0, count - 3), count - 1))];
  }

  Filler msra() const {
    Filler filler;
    filler.type = Filler::Type::msra;
    return filler;
  }

  void convolution(const Blob& from) {
    ConvolutionOptions options;
    options.num_output = pick(2, 7);
    options.weight_filler = msra();
    options.bias_term = pick(0, 2) > 0;
    if (pick(0, 3) == 0 && from.shape[1] % 2 == 0) options.group = 2, options.num_output = 2 * pick(1, 3);
    for (int axis = 2; axis < from.shape.rank(); ++axis) {
      const int64_t room = from.shape[axis];
      const int64_t kernel = std::min<int64_t>(pick(1, 4), room);
      options.kernel.push_back(kernel);
      options.pad.push_back(pick(0, static_cast<int>(kernel - 1)));
      options.stride.push_back(pick(0, 3) == 0 ? pick(2, 3) : 1);
      options.dilation.push_back(kernel == 2 && room > 3 ? pick(1, 2) : 1);
    }
    append(std::make_shared<Convolution>(options), from);
    if (pick(0, 1) == 0) append(std::make_shared<Pointwise>(ReluOptions{}), blobs_.back());
  }

  void pooling(const Blob& from) {
    PoolingOptions options;
    options.method = pick(0, 1) == 0 ? PoolingOptions::Method::max : PoolingOptions::Method::average;
    for (int axis = 2; axis < from.shape.rank(); ++axis) {
      const int64_t kernel = std::min<int64_t>(pick(1, 3), from.shape[axis]);
      options.kernel.push_back(kernel);
      options.pad.push_back(pick(0, static_cast<int>(kernel - 1)));
      options.stride.push_back(pick(1, 3));
    }
    options.rounding = pick(0, 1) == 0 ? Rounding::up_inside : Rounding::down;
    append(std::make_shared<Pooling>(options), from);
  }

  void normalization(const Blob& from) {
    if (pick(0, 2) == 0) {
      LrnOptions options;
      options.local_size = 3;
      if (pick(0, 1) == 0) options.region = LrnOptions::Region::within_channel;
      append(std::make_shared<Lrn>(options), from);
      return;
    }
    append(std::make_shared<BatchNorm>(BatchNormOptions{.eps = 1e-2}), from);
    ScaleOptions scale;
    scale.bias_term = true;
    scale.broadcast.num_axes = 1;
    append(std::make_shared<Scale>(scale), blobs_.back());
    if (pick(0, 1) == 0) append(std::make_shared<Pointwise>(ReluOptions{}), blobs_.back());
  }

  void pointwise(const Blob& from) {
    switch (pick(0, 4)) {
      case 0:
        return append(std::make_shared<Pointwise>(TanhOptions{}), from);
      case 1:
        return append(std::make_shared<Pointwise>(SigmoidOptions{}), from);
      case 2:
        return append(std::make_shared<Dropout>(DropoutOptions{.ratio = 0.3}), from);
      case 3:
        return append(std::make_shared<PRelu>(PReluOptions{}), from);
      default:
        return append(std::make_shared<Pointwise>(EluOptions{}), from);
    }
  }

  // Two branches that meet again.
  void branches(const Blob& from) {
    pointwise(from);
    const Blob one = blobs_.back();
    if (pick(0, 1) == 0) {
      pointwise(from);
      const Blob other = blobs_.back();
      const std::string name = "x" + std::to_string(declarations_.size()) + "_sum";
      add(name, std::make_shared<Eltwise>(EltwiseOptions{}), {one.name, other.name}, {name});
      blobs_.push_back({name, one.shape});
      return;
    }
    const std::string name = "x" + std::to_string(declarations_.size()) + "_concat";
    add(name, std::make_shared<Concat>(ConcatOptions{}), {one.name, from.name, one.name}, {name});
    Shape shape = one.shape;
    shape.set(1, 2 * one.shape[1] + from.shape[1]);
    blobs_.push_back({name, shape});
  }

  void slice(const Blob& from) {
    if (from.shape[1] < 2) return pointwise(from);
    const std::string name = "x" + std::to_string(declarations_.size()) + "_slice";
    SliceOptions options;
    options.slice_points = {pick(1, static_cast<int>(from.shape[1]) - 1)};
    add(name, std::make_shared<Slice>(options), {from.name}, {name + "a", name + "b"});
    Shape first = from.shape, second = from.shape;
    first.set(1, options.slice_points[0]);
    second.set(1, from.shape[1] - options.slice_points[0]);
    blobs_.push_back({name + "a", first});
    blobs_.push_back({name + "b", second});
  }

  void draw_layer() {
    const Blob from = any();
    switch (pick(0, 7)) {
      case 0:
      case 1:
      case 2:
        return convolution(from);
      case 3:
        return pooling(from);
      case 4:
        return normalization(from);
      case 5:
        return branches(from);
      case 6:
        return slice(from);
      default:
        return pointwise(from);
    }
  }

  void product(const Blob& from, int outputs) {
    InnerProductOptions options;
    options.num_output = outputs;
    options.weight_filler = msra();
    options.bias_term = pick(0, 2) > 0;
    append(std::make_shared<InnerProduct>(options), from);
  }

  void finish() {
    if (pick(0, 2) == 0) {
      // A score and a label for each position would need labels of that shape: one label a sample instead.
      PoolingOptions global;
      global.method = PoolingOptions::Method::average;
      global.global_pooling = true;
      append(std::make_shared<Pooling>(global), blobs_.back());
    }
    if (pick(0, 1) == 0) {
      product(blobs_.back(), pick(4, 9));
      append(std::make_shared<Pointwise>(ReluOptions{}), blobs_.back());
    }
    product(blobs_.back(), classes);
    SoftmaxLossOptions options;
    if (pick(0, 1) == 0) options.ignore_label = pick(0, classes - 1);  // then the ranks count labels together
    add("loss", std::make_shared<SoftmaxLoss>(options), {blobs_.back().name, "label"}, {"loss"});
  }

  std::mt19937 random_;
  int batch_;
  std::vector<LayerDeclaration> declarations_;
  std::vector<Blob> blobs_;
};

// A net of layers whose sums of small integers are exact in float: convolutions, inner products, ReLU, max
// pooling, sums and concatenations, and a loss whose gradient has two binary places. Weights are set by the
// test.
class RandomExactNet {
 public:
  explicit RandomExactNet(uint32_t seed) : random_(seed) {}

  Network build() {
    SourceOptions options;
    options.kind = SourceOptions::Kind::input;
    const Shape images{4, pick(1, 3), pick(4, 7), pick(4, 7)};
    options.shapes = {images, Shape{4, 3}};
    add("data", std::make_shared<Source>(options), {}, {"data", "label"});
    std::string blob = convolution("data");
    if (pick(0, 1) == 0) blob = append("relu", std::make_shared<Pointwise>(ReluOptions{}), {blob});
    std::string other = convolution(pick(0, 1) == 0 ? "data" : blob);
    if (pick(0, 2) == 0) {
      PoolingOptions pool;
      pool.kernel = {2};
      pool.stride = {pick(1, 2)};
      other = append("pool", std::make_shared<Pooling>(pool), {other});
    } else if (blob != "data") {
      LayerPtr join = std::make_shared<Concat>(ConcatOptions{});
      if (pick(0, 1) == 0) join = std::make_shared<Eltwise>(EltwiseOptions{});
      other = append("join", join, {other, blob});
    }
    InnerProductOptions product;
    product.num_output = 3;
    other = append("product", std::make_shared<InnerProduct>(product), {other});
    add("loss", std::make_shared<EuclideanLoss>(), {other, "label"}, {"loss"});
    return built(declarations_);
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  void add(const std::string& name, LayerPtr layer, std::vector<std::string> bottoms,
           std::vector<std::string> tops) {
    declarations_.push_back(declared(name, std::move(layer), std::move(bottoms), std::move(tops)));
  }
  std::string append(std::string name, LayerPtr layer, std::vector<std::string> bottoms) {
    name += std::to_string(declarations_.size());
    add(name, std::move(layer), std::move(bottoms), {name});
    return name;
  }
  // Adds one whose output has the same shape as all others, so that any two may be summed.
  std::string convolution(const std::string& bottom) {
    ConvolutionOptions options;
    options.num_output = 4;
    options.kernel = {3};
    options.pad = {1};
    return append("conv", std::make_shared<Convolution>(options), {bottom});
  }

  std::mt19937 random_;
  std::vector<LayerDeclaration> declarations_;
};

inline Network random_exact_net(uint32_t seed) { return RandomExactNet(seed).build(); }

inline Network random_layers_net(uint32_t seed, int batch = 0) {
  return RandomLayersNet(seed, batch).build();
}

}  // namespace cortado::testing
