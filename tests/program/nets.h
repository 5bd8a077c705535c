#pragma once

#include <random>

#include "cortado/layers/convolution.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/source.h"
#include "cortado/net/build_network.h"
#include "cortado/net/network.h"
#include "cortado/program/program.h"

namespace cortado::testing {

inline LayerDeclaration declared(const std::string& name, LayerPtr layer, std::vector<std::string> bottoms,
                                 std::vector<std::string> tops) {
  LayerDeclaration declaration;
  declaration.name = name;
  declaration.layer = std::move(layer);
  declaration.bottoms = std::move(bottoms);
  declaration.tops = std::move(tops);
  return declaration;
}

// A net whose source layers tell their own shapes.
inline Network built(const std::vector<LayerDeclaration>& declarations, Phase phase = Phase::train) {
  return build_network("test", phase, declarations, [](const LayerDeclaration& layer) {
    return dynamic_cast<const Source&>(*layer.layer).options().shapes;
  });
}

// Kernels as a fast backend would have them, so that every pass has something to do.
inline std::optional<TaskFacts> facts_of(const Task& task) {
  TaskFacts facts;
  const bool pointwise = task.layer().type() == "ReLU" || task.layer().type() == "TanH";
  const bool sum = task.layer().type() == "Eltwise";
  facts.in_place = pointwise;
  facts.backward_reads_inputs = !pointwise && !sum;
  facts.backward_reads_outputs = pointwise || task.layers.size() > 1;
  facts.passes_output_gradient = sum;
  facts.overwrites_output_gradients = task.layers.size() > 1;
  facts.scratch = {100};
  if (task.layer().type() == "TanH" && task.cut) facts.forward_sums = facts.backward_sums = 4;
  return facts;
}

// Small nets made by hand, for the tests of program/ and exec/.
class NetBuilder {
 public:
  explicit NetBuilder(int64_t samples = 2) {
    SourceOptions options;
    options.kind = SourceOptions::Kind::input;
    options.shapes = {Shape{samples, 4, 6, 6}};
    declare("data", std::make_shared<Source>(options), {}, {"data"});
  }

  NetBuilder& declare(const std::string& name, LayerPtr layer, std::vector<std::string> bottoms,
                      std::vector<std::string> tops) {
    declarations_.push_back(declared(name, std::move(layer), std::move(bottoms), std::move(tops)));
    return *this;
  }
  NetBuilder& conv(const std::string& name, const std::string& bottom, const std::string& shared = "") {
    ConvolutionOptions options;
    options.num_output = 4;
    options.kernel = {3};
    options.pad = {1};
    options.weight_filler.type = Filler::Type::msra;
    declare(name, std::make_shared<Convolution>(options), {bottom}, {name});
    if (!shared.empty()) {
      declarations_.back().parameters = {{shared + "_w", 1, 1}, {shared + "_b", 1, 1}};
    }
    return *this;
  }
  NetBuilder& relu(const std::string& blob) {
    return declare("relu_" + blob + std::to_string(declarations_.size()),
                   std::make_shared<Pointwise>(ReluOptions{}), {blob}, {blob});
  }
  NetBuilder& tanh(const std::string& bottom, const std::string& top) {
    return declare(top, std::make_shared<Pointwise>(TanhOptions{}), {bottom}, {top});
  }
  NetBuilder& sum(const std::string& name, std::vector<std::string> bottoms) {
    return declare(name, std::make_shared<Eltwise>(EltwiseOptions{}), std::move(bottoms), {name});
  }
  // 0.5 / N * |a - b|^2
  NetBuilder& loss(const std::string& a, const std::string& b) {
    return declare("loss", std::make_shared<EuclideanLoss>(), {a, b}, {"loss"});
  }
  Network build(Phase phase = Phase::train) const { return built(declarations_, phase); }

 private:
  std::vector<LayerDeclaration> declarations_;
};

// Two branches of two convolutions from the data to the loss.
inline Network two_branches() {
  return NetBuilder()
      .conv("a1", "data")
      .conv("a2", "a1")
      .conv("b1", "data")
      .conv("b2", "b1")
      .loss("a2", "b2")
      .build();
}

// A random directed acyclic net of convolutions, activations (in place and not), sums and shared parameters.
inline Network random_net(uint32_t seed, Phase phase = Phase::train, int64_t samples = 2) {
  std::mt19937 random(seed);
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  NetBuilder net(samples);
  std::vector<std::string> blobs{"data"};
  int layers = pick(3, 12);
  for (int i = 0; i < layers; ++i) {
    std::string from = blobs[pick(0, static_cast<int>(blobs.size()) - 1)], name = "x" + std::to_string(i);
    switch (pick(0, 4)) {
      case 0:
        net.conv(name, from, pick(0, 2) == 0 ? "shared" : "");
        break;
      case 1:
        net.conv(name, from).relu(name);
        break;
      case 2:
        net.tanh(from, name);
        break;
      case 3:
        net.sum(name, {from, blobs[pick(0, static_cast<int>(blobs.size()) - 1)]});
        break;
      default:
        net.sum(name, {from, "data"}).relu(name);
        break;
    }
    blobs.push_back(name);
  }
  net.conv("last", blobs.back()).conv("other", blobs[pick(0, static_cast<int>(blobs.size()) - 1)]);
  return net.loss("last", "other").build(phase);
}

}  // namespace cortado::testing
