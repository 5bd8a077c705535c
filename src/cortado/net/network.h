#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/base/index.h"
#include "cortado/layers/precision.h"

namespace cortado {

// Where something was written, for messages: "lenet.prototxt:12".
struct SourceLocation {
  std::string file;
  int line = 0;  // 1-based; 0: unknown
  std::string text() const;
};

// One `layer { }` of a model file, before shapes are known.
struct LayerDeclaration {
  struct Parameter {
    std::string shared_name;  // equal names share one parameter; empty: its own
    double lr_mult = 1, decay_mult = 1;
    bool permissive = false;  // sharing needs equal sizes only, not equal shapes
  };
  std::string name;       // no other layer's
  std::string file_name;  // in the file, where several may have one; empty: `name`
  std::string part_of;    // not empty: computes a part of the layer of that name, with its parameters
  LayerPtr layer;
  std::vector<std::string> bottoms, tops;
  std::vector<Parameter> parameters;                // param { }: may be shorter than the layer's
  std::vector<double> loss_weights;                 // empty: the layer's defaults
  std::vector<std::optional<bool>> propagate_down;  // empty: as needed
  std::optional<Phase> phase;                       // empty: the network's
  SourceLocation where;

  std::string text() const;  // "lenet.prototxt:12: layer 'conv1'"
};

using NodeIndex = TypedIndex<struct NodeTag>;            // of Network::nodes()
using TensorIndex = TypedIndex<struct TensorTag>;        // of Network::tensors()
using ParameterIndex = TypedIndex<struct ParameterTag>;  // of Network::parameters()

// A network: an immutable directed acyclic graph in single-assignment form. Layers are in execution order. An
// in-place top (bottom and top of one name) makes a new tensor, so every tensor has one producer. A loss
// layer without tops gets one of its own name.
class Network {
 public:
  struct Tensor {
    std::string name;   // the blob's name in the file
    bool named = true;  // false: the top of a loss layer that names none; `name` is the layer's
    Shape shape;        // global, spoken order
    ElementType type = ElementType::f32;
    NodeIndex producer;
    int producer_output = 0;
    std::vector<NodeIndex> consumers;  // in order; one entry per use
    bool needs_gradient = false;       // a loss depends on it and a learnable parameter lies before it
  };
  struct Parameter {
    std::string name;  // "conv1/weight", or the shared name
    ParameterSpec spec;
    ElementType type = ElementType::f32;
    double lr_mult = 1, decay_mult = 1;
    NodeIndex declared_by;  // the node that declares it first
    std::vector<NodeIndex> users;
    bool one_shape = true;        // false: users see its elements, in row-major order, in other shapes
    bool wants_gradient = false;  // learnable, lr_mult != 0, and a loss depends on it
  };
  struct Node {
    std::string name;       // no other node's: "loss", "loss#2"
    std::string file_name;  // in the file, where several layers may have one: "loss", "loss"
    std::string part_of;    // the node that this one computes a part of, with its parameters; empty: none
    LayerPtr layer;
    Phase phase = Phase::train;  // by which the layer behaves
    std::vector<TensorIndex> inputs, outputs;
    std::vector<ParameterIndex> parameters;  // in the layer's order
    std::vector<Shape> parameter_shapes;     // as the layer sees them
    std::vector<double> loss_weights;        // per output
    std::vector<bool> propagate_down;        // per input: its gradient is computed
    SourceLocation where;
    bool has_backward = false;  // some propagate_down or parameter gradient
  };

  // Shapes of what a source layer brings in, which only its file or database knows.
  using SourceShapes = std::function<std::vector<Shape>(const LayerDeclaration&)>;

  // The parts must fit together: build_network() makes them.
  Network(std::string name, bool learns, IndexedVector<NodeIndex, Node> nodes,
          IndexedVector<TensorIndex, Tensor> tensors, IndexedVector<ParameterIndex, Parameter> parameters);

  // The same network with tensors of the types that this precision gives them.
  Network in(Precision precision) const;
  Precision precision() const { return precision_; }
  // The type of each tensor where each node is of its own precision: a node of bf16 goes by the rules of
  // layers/precision.h, what one of f32 makes is f32. What nobody consumes is f32, as who reads it expects.
  IndexedVector<TensorIndex, ElementType> types(const IndexedVector<NodeIndex, Precision>& of_nodes) const;

  const std::string& name() const { return name_; }
  bool learns() const { return learns_; }
  const IndexedVector<NodeIndex, Node>& nodes() const { return nodes_; }
  const IndexedVector<TensorIndex, Tensor>& tensors() const { return tensors_; }
  const IndexedVector<ParameterIndex, Parameter>& parameters() const { return parameters_; }

  // Tensors that no layer consumes, by name: what a test prints (Caffe's net outputs). The top of a loss
  // layer that names none is not among them.
  std::vector<TensorIndex> outputs() const;
  // Latest tensor of that blob name; nowhere: there is none.
  TensorIndex tensor(const std::string& name) const;
  NodeIndex node(const std::string& name) const;
  std::vector<Shape> shapes_of(const std::vector<TensorIndex>& tensors) const;
  int64_t parameter_count() const;  // elements of all distinct learnable parameters
  Flops forward_flops(NodeIndex node) const;

 private:
  std::string name_;
  bool learns_ = true;
  Precision precision_ = Precision::f32;
  IndexedVector<NodeIndex, Node> nodes_;
  IndexedVector<TensorIndex, Tensor> tensors_;
  IndexedVector<ParameterIndex, Parameter> parameters_;
  std::unordered_map<std::string, TensorIndex> tensor_named_;
  std::unordered_map<std::string, NodeIndex> node_named_;
};

}  // namespace cortado
