#include "cortado/program/placement.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/user_defined.h"
#include "cortado/parallel/layer_cut.h"

namespace cortado {
namespace {

using Operation = Placement::Operation;
using Gradients = Operation::Gradients;
using Value = Placement::Value;

class Placer {
 public:
  Placer(const Network& network, const NodeStrategies& strategies, int ranks, bool reproducible)
      : network_(network), strategies_(strategies) {
    placement_.ranks = ranks;
    placement_.reproducible = reproducible;
    placement_.tensor_values.assign(network.tensors().size(), ValueIndex());
    placement_.report_values.assign(network.tensors().size(), ValueIndex());
    placement_.slices.assign(network.parameters().size(), Layout(static_cast<size_t>(ranks)));
    IndexedVector<NodeIndex, Precision> precisions;
    for (NodeIndex n : indices(network.nodes()))
      precisions.push_back(strategies[n].precision.value_or(network.precision()));
    types_ = network.types(precisions);
    for (const Network::Parameter& parameter : network.parameters())
      placement_.parameter_types.push_back(parameter.type);
  }

  Placement run() {
    for (NodeIndex n : indices(network_.nodes())) {
      require_one_rank(network_.nodes()[n]);
      if (network_.nodes()[n].layer->is_source())
        place_source(n);
      else
        place_node(n);
    }
    place_report();
    return std::move(placement_);
  }

 private:
  void require_one_rank(const Network::Node& node) const {
    if (placement_.ranks > 1 && dynamic_cast<const UserDefined*>(node.layer.get()))
      throw UserError(
          fmt::format("{}: layer '{}': a program computes it, whole: nobody knows how to cut it over {} "
                      "ranks; train on one rank",
                      node.where.text(), node.name, placement_.ranks));
  }

  Layout nowhere() const { return Layout(static_cast<size_t>(placement_.ranks)); }

  ValueIndex add_value(TensorIndex tensor, std::string name, Layout layout, OperationIndex producer) {
    const ValueIndex added = placement_.values.end_index();
    placement_.values.push_back({.name = std::move(name),
                                 .tensor = tensor,
                                 .type = types_[tensor],
                                 .layout = std::move(layout),
                                 .producer = producer,
                                 .consumers = {},
                                 .needs_gradient = network_.tensors()[tensor].needs_gradient});
    return added;
  }

  // Appends an operation and makes it a consumer of its inputs. Its outputs are added later.
  OperationIndex add_operation(Operation operation) {
    const OperationIndex index = placement_.operations.end_index();
    for (ValueIndex value : operation.inputs) placement_.values[value].consumers.push_back(index);
    placement_.operations.push_back(std::move(operation));
    return index;
  }

  OperationIndex add_movement(Operation::Kind kind, NodeIndex node, ValueIndex from) {
    Operation movement;
    movement.kind = kind;
    movement.node = node;
    movement.inputs.push_back(from);
    return add_operation(std::move(movement));
  }

  LayerCut cut_of(NodeIndex index) const {
    const auto& node = network_.nodes()[index];
    return cut_layer(*node.layer, network_.shapes_of(node.inputs), network_.shapes_of(node.outputs),
                     strategies_[index].config, placement_.ranks);
  }

  // Every rank reads what its layers need: sources cost no communication. It reads the same samples of all
  // tops.
  void place_source(NodeIndex index) {
    const auto& node = network_.nodes()[index];
    std::vector<Shape> shapes = network_.shapes_of(node.outputs);
    const int64_t batch = batch_size_of(shapes[0]);
    std::vector<Layout> needs;
    for (TensorIndex tensor : node.outputs) needs.push_back(needs_of(tensor));
    std::vector<BatchPart>& parts = placement_.batches[node.name];
    for (int rank = 0; rank < placement_.ranks; ++rank) {
      parts.push_back(part_of_samples(shapes, samples_needed(shapes, needs, batch, rank)));
      for (size_t top = 0; top < shapes.size() && placement_.ranks > 1; ++top)
        if (has_row_per_sample(shapes[top], batch)) narrow(parts.back().tops[top], needs[top], rank);
    }
    Operation source;
    source.kind = Operation::Kind::source;
    source.node = index;
    const OperationIndex operation = add_operation(std::move(source));
    for (size_t top = 0; top < shapes.size(); ++top) {
      Layout layout = nowhere();
      for (int rank = 0; rank < placement_.ranks; ++rank) {
        const Box& box = parts[static_cast<size_t>(rank)].tops[top];
        if (!box.empty()) layout[rank] = box;
      }
      const TensorIndex tensor = node.outputs[top];
      const ValueIndex value = add_value(tensor, network_.tensors()[tensor].name, layout, operation);
      placement_.operations[operation].outputs.push_back(value);
      placement_.tensor_values[tensor] = value;
    }
  }

  // The smallest boxes that hold all that the layers of each rank read of a tensor.
  Layout needs_of(TensorIndex tensor) const {
    Layout needs = nowhere();
    for (NodeIndex consumer : network_.tensors()[tensor].consumers) {
      const auto& inputs = network_.nodes()[consumer].inputs;
      const LayerCut cut = cut_of(consumer);
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i] != tensor) continue;
        const Layout& reads = replicates(consumer) ? cut.replicas_reads : cut.reads[i];
        for (int rank = 0; rank < placement_.ranks; ++rank)
          if (reads[rank]) needs[rank] = needs[rank] ? needs[rank]->hull(*reads[rank]) : reads[rank];
      }
    }
    return needs;
  }

  // All samples where a rank needs a top that belongs to the batch as a whole.
  static Range samples_needed(const std::vector<Shape>& shapes, const std::vector<Layout>& needs,
                              int64_t batch, int rank) {
    std::optional<Box> samples;
    for (size_t top = 0; top < shapes.size(); ++top) {
      const std::optional<Box>& need = needs[top][rank];
      if (!need) continue;
      Box range = Box::whole(Shape{batch});
      if (has_row_per_sample(shapes[top], batch)) range[0] = (*need)[0];
      samples = samples ? samples->hull(range) : range;
    }
    return samples ? (*samples)[0] : Range{};
  }

  // Leaves of the rows of a top what `needs` has of them, on this rank perhaps nothing. Labels of one number
  // a sample stay, and so does what no layer reads, which is an output of the net.
  static void narrow(Box& box, const Layout& needs, int rank) {
    const bool read = std::ranges::any_of(needs, [](const auto& need) { return need.has_value(); });
    if (!read) return;
    for (int axis = 1; axis < box.rank(); ++axis) box[axis] = needs[rank] ? (*needs[rank])[axis] : Range{};
  }

  // The value in which ranks hold `needed` of a tensor: the one that owns it, or a copy that consumers with
  // equal needs share, so that it travels once. Reproducible gradients of consumers are not added before they
  // are summed over ranks: each consumer has a copy of its own.
  ValueIndex value_with(TensorIndex tensor, const Layout& needed, NodeIndex node) {
    const ValueIndex owned = placement_.tensor_values[tensor];
    if (in_place(placement_.values[owned].layout, needed)) return owned;
    for (ValueIndex copy : copies_[tensor]) {
      if (placement_.values[copy].layout == needed && !placement_.reproducible) return copy;
    }
    const OperationIndex operation = add_movement(Operation::Kind::copy, node, owned);
    const ValueIndex value =
        add_value(tensor, network_.tensors()[tensor].name + " needed", needed, operation);
    // Set where a consumer wants it (take_input).
    placement_.values[value].needs_gradient = false;
    placement_.operations[operation].outputs = {value};
    copies_[tensor].push_back(value);
    return value;
  }

  void take_input(Operation& operation, size_t input, Layout reads) {
    const auto& node = network_.nodes()[operation.node];
    const ValueIndex value = value_with(node.inputs[input], reads, operation.node);
    operation.reads.push_back(std::move(reads));
    if (node.propagate_down[input]) placement_.values[value].needs_gradient = true;
    operation.inputs.push_back(value);
  }

  void place_node(NodeIndex index) {
    const auto& node = network_.nodes()[index];
    LayerCut cut = cut_of(index);
    take_slices(index, cut);
    Operation operation{.node = index, .layer = node.layer, .strategy = strategies_[index]};
    operation.parameters = node.parameters;
    operation.input_gradients = node.propagate_down;
    operation.domain = std::move(cut.domain);
    operation.slices = std::move(cut.slices);
    for (size_t i = 0; i < node.inputs.size(); ++i) take_input(operation, i, std::move(cut.reads[i]));
    if (replicates(index)) operation.gradients = Gradients::elsewhere;
    if (operation.strategy.config.degrees.r > 1) return place_partial_sums(std::move(operation), cut);
    const OperationIndex placed = add_operation(std::move(operation));
    for (size_t k = 0; k < node.outputs.size(); ++k) place_output(placed, k, cut);
    if (replicates(index)) place_replicated(placed, placement_.operations[placed].outputs[0], cut);
  }

  // True where every replica of the layer's parameters computes their whole gradients.
  bool replicates(NodeIndex index) const {
    return facts_of(strategies_[index].sync).replicates && network_.learns() &&
           sums_gradients(network_, index, strategies_[index].config.degrees);
  }

  // Lets every replica compute the whole gradients of a layer's parameters. The inputs of all replicas are
  // gathered as soon as they are there. The gradient of `output` goes to all replicas by the adjoint of a sum
  // over them.
  void place_replicated(OperationIndex layer, ValueIndex output, const LayerCut& cut) {
    const NodeIndex index = placement_.operations[layer].node;
    const ValueIndex input = value_with(network_.nodes()[index].inputs[0], cut.replicas_reads, index);
    Operation whole = placement_.operations[layer];
    whole.gradients = Gradients::only;
    whole.inputs = {input};
    whole.reads = {cut.replicas_reads};
    whole.input_gradients = {false};
    whole.domain = cut.replicas_domain;
    const OperationIndex placed = add_operation(std::move(whole));
    const TensorIndex tensor = placement_.values[output].tensor;
    const ValueIndex outputs =
        add_value(tensor, network_.tensors()[tensor].name + " of all", cut.replicas_domain, placed);
    placement_.values[outputs].partial = true;
    // The kernels of both operations hold the weights in one order where their tensors have the same types.
    placement_.values[outputs].type = placement_.values[placement_.operations[layer].outputs[0]].type;
    placement_.operations[placed].outputs = {outputs};
    const OperationIndex gather = add_movement(Operation::Kind::sum, index, outputs);
    placement_.operations[gather].gradients = Gradients::only;
    placement_.operations[gather].outputs = {output};
  }

  void place_output(OperationIndex operation, size_t k, const LayerCut& cut) {
    const NodeIndex index = placement_.operations[operation].node;
    const auto& node = network_.nodes()[index];
    const TensorIndex tensor = node.outputs[k];
    ValueIndex value = add_value(tensor, network_.tensors()[tensor].name, cut.computes[k], operation);
    placement_.operations[operation].outputs.push_back(value);
    if (cut.owns[k] != cut.computes[k]) value = place_sum(value, index, cut.owns[k]);
    finish_output(value, tensor, node.loss_weights[k]);
  }

  // Records the value that holds a tensor, and where its gradient starts. Where a sum made the value and no
  // consumer adds to its gradient, that starts at the addends: this spares a message.
  void finish_output(ValueIndex value, TensorIndex tensor, double loss_weight) {
    placement_.tensor_values[tensor] = value;
    const auto& info = network_.tensors()[tensor];
    bool more = false;
    for (NodeIndex consumer : info.consumers) {
      const auto& node = network_.nodes()[consumer];
      for (size_t i = 0; i < node.inputs.size(); ++i)
        more |= node.inputs[i] == tensor && node.propagate_down[i];
    }
    const auto& producer = placement_.operations[placement_.values[value].producer];
    if (producer.kind == Operation::Kind::sum && !more) {
      placement_.values[value].needs_gradient = false;
      value = producer.inputs[0];
    }
    placement_.values[value].loss_weight = loss_weight;
  }

  // Sums the addends of `partial` at the owners of `to`.
  ValueIndex place_sum(ValueIndex partial, NodeIndex node, Layout to) {
    placement_.values[partial].partial = true;
    placement_.values[partial].type = ElementType::f32;  // sums over ranks are
    placement_.values[partial].name += " addends";
    const OperationIndex operation = add_movement(Operation::Kind::sum, node, partial);
    const TensorIndex tensor = placement_.values[partial].tensor;
    const ValueIndex value = add_value(tensor, network_.tensors()[tensor].name, std::move(to), operation);
    placement_.operations[operation].outputs = {value};
    return value;
  }

  // A layer cut along r: partial sums without the bias, their reduce-scatter, and the bias where the sum is
  // owned (docs/explanation/cutting.md).
  void place_partial_sums(Operation operation, const LayerCut& cut) {
    const NodeIndex index = operation.node;
    const Layout& owned = cut.owns[0];
    const auto& node = network_.nodes()[index];
    const TensorIndex tensor = node.outputs[0];
    const LayerStrategy strategy = operation.strategy;
    const Layout domain = operation.domain;
    Layout bias;
    const LayerPtr without_bias = node.layer->without_bias();
    if (without_bias) {
      operation.layer = without_bias;
      operation.parameters.pop_back();
      bias = std::move(operation.slices.back());
      operation.slices.pop_back();
    }
    const OperationIndex placed = add_operation(std::move(operation));
    const ValueIndex partial = add_value(tensor, network_.tensors()[tensor].name, domain, placed);
    placement_.operations[placed].outputs = {partial};
    ValueIndex value = place_sum(partial, index, owned);
    if (replicates(index)) place_replicated(placed, value, cut);
    if (without_bias) value = place_bias(index, value, strategy, owned, std::move(bias));
    finish_output(value, tensor, node.loss_weights[0]);
  }

  ValueIndex place_bias(NodeIndex index, ValueIndex sum, const LayerStrategy& strategy, const Layout& owned,
                        Layout slices) {
    const auto& node = network_.nodes()[index];
    const TensorIndex tensor = node.outputs[0];
    Operation operation{.node = index, .strategy = strategy};
    BiasOptions options;
    options.broadcast.axis = 1;
    options.broadcast.num_axes = 1;
    operation.layer = std::make_shared<Bias>(options);
    operation.parameters = {node.parameters.back()};
    operation.inputs = {sum};
    operation.input_gradients = {network_.tensors()[tensor].needs_gradient};
    operation.domain = owned;
    operation.reads = {owned};
    operation.slices = {std::move(slices)};
    placement_.values[sum].name += " without bias";
    const OperationIndex placed = add_operation(std::move(operation));
    const ValueIndex value = add_value(tensor, network_.tensors()[tensor].name, owned, placed);
    placement_.operations[placed].outputs = {value};
    return value;
  }

  // The slices of a node's parameters become the network's.
  void take_slices(NodeIndex index, const LayerCut& cut) {
    const auto& node = network_.nodes()[index];
    for (size_t p = 0; p < node.parameters.size(); ++p) {
      const Network::Parameter& parameter = network_.parameters()[node.parameters[p]];
      for (size_t rank = 0; rank < cut.slices[p].size(); ++rank) {
        if (!cut.slices[p][rank]) continue;
        // Users that see a parameter in several shapes all hold the whole.
        const Box slice = parameter.one_shape ? *cut.slices[p][rank] : Box::whole(parameter.spec.shape);
        auto& known = placement_.slices[node.parameters[p]][rank];
        ensure(!known || *known == slice, "layers that share a parameter hold unequal slices");
        known = slice;
      }
    }
  }

  // All ranks get the losses, since they must agree to stop; rank 0 gets the other outputs and reports them.
  void place_report() {
    for (TensorIndex tensor : indices(network_.tensors())) {
      const auto& info = network_.tensors()[tensor];
      const auto& weights = network_.nodes()[info.producer].loss_weights;
      const bool loss = !weights.empty() && weights[info.producer_output] != 0;
      if (!loss && !info.consumers.empty()) continue;
      Layout needed = nowhere();
      for (int rank = 0; rank < (loss ? placement_.ranks : 1); ++rank) needed[rank] = Box::whole(info.shape);
      const auto& producer =
          placement_.operations[placement_.values[placement_.tensor_values[tensor]].producer];
      if (producer.kind == Operation::Kind::source) continue;
      placement_.report_values[tensor] = value_with(tensor, needed, NodeIndex());
    }
  }

  const Network& network_;
  const NodeStrategies& strategies_;
  IndexedVector<TensorIndex, ElementType> types_;
  Placement placement_;
  std::map<TensorIndex, std::vector<ValueIndex>> copies_;
};

}  // namespace

Placement place(const Network& network, const NodeStrategies& strategies, int ranks, bool reproducible) {
  Placement placement = Placer(network, strategies, ranks, reproducible).run();
  complete(placement);
  if (network.learns()) mark_recomputed(placement);
  return placement;
}

}  // namespace cortado
