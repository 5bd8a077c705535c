#include "cortado/plan/alike.h"

#include <algorithm>

#include "cortado/layers/batch_norm.h"
#include "cortado/layers/concat.h"
#include "cortado/layers/convolution.h"
#include "cortado/layers/dropout.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/lrn.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/scale.h"

namespace cortado::plan {
namespace {

bool same_options(const Concat& a, const Concat& b) { return a.options().axis == b.options().axis; }
bool same_options(const Eltwise& a, const Eltwise& b) {
  const EltwiseOptions &one = a.options(), &other = b.options();
  return one.operation == other.operation && one.coeff == other.coeff &&
         one.stable_prod_grad == other.stable_prod_grad;
}
bool same_options(const Pointwise& a, const Pointwise& b) { return a.function() == b.function(); }
template <typename Kind>
bool same_options(const Kind& a, const Kind& b) {
  return a.options() == b.options();
}

// Whether both layers are of this class, with the same options.
template <typename Kind>
bool both(const Layer& a, const Layer& b) {
  const auto* first = dynamic_cast<const Kind*>(&a);
  const auto* second = dynamic_cast<const Kind*>(&b);
  return first && second && same_options(*first, *second);
}

// Of the layers that nets repeat.
bool same_layer(const Layer& a, const Layer& b) {
  if (a.type() != b.type()) return false;
  return both<Convolution>(a, b) || both<BatchNorm>(a, b) || both<Scale>(a, b) || both<Pointwise>(a, b) ||
         both<Pooling>(a, b) || both<Concat>(a, b) || both<Eltwise>(a, b) || both<InnerProduct>(a, b) ||
         both<Dropout>(a, b) || both<Lrn>(a, b);
}

bool same_parameters(const Network& network, const Network::Node& a, const Network::Node& b) {
  return std::ranges::equal(a.parameters, b.parameters, [&](int p, int q) {
    const Network::Parameter &one = network.parameters()[static_cast<size_t>(p)],
                             &other = network.parameters()[static_cast<size_t>(q)];
    return one.users.size() == 1 && other.users.size() == 1 && one.wants_gradient == other.wants_gradient;
  });
}

bool same_shapes(const Network& network, const std::vector<int>& a, const std::vector<int>& b) {
  return std::ranges::equal(a, b, [&](int one, int other) {
    return network.tensors()[static_cast<size_t>(one)].shape ==
           network.tensors()[static_cast<size_t>(other)].shape;
  });
}

// Whether the same inputs are samples, which a reader's memory holds (memory.h).
bool same_samples(const Network& network, const Network::Node& a, const Network::Node& b) {
  const auto sample = [&](int tensor) {
    const int producer = network.tensors()[static_cast<size_t>(tensor)].producer;
    return network.nodes()[static_cast<size_t>(producer)].layer->is_source();
  };
  return std::ranges::equal(a.inputs, b.inputs, {}, sample, sample);
}

}  // namespace

bool alike(const Network& network, const Group& a, const Group& b) {
  return std::ranges::equal(a.nodes, b.nodes, [&](int i, int k) {
    const Network::Node &one = network.nodes()[static_cast<size_t>(i)],
                        &other = network.nodes()[static_cast<size_t>(k)];
    return same_shapes(network, one.outputs, other.outputs) &&
           same_shapes(network, one.inputs, other.inputs) && same_samples(network, one, other) &&
           one.propagate_down == other.propagate_down && one.loss_weights == other.loss_weights &&
           one.has_backward == other.has_backward && one.phase == other.phase &&
           same_layer(*one.layer, *other.layer) && same_parameters(network, one, other);
  });
}

}  // namespace cortado::plan
