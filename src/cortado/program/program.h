#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cortado/layers/task.h"
#include "cortado/net/network.h"
#include "cortado/program/movement.h"
#include "cortado/program/placement.h"
#include "cortado/program/step.h"

namespace cortado {

// What a Program must know about the kernel that will run a task. Whoever owns the kernels answers
// (TaskOracle).
struct TaskFacts {
  Bytes saved;                    // kept from the forward to the backward step
  Bytes scratch;                  // needed during a step only
  bool saved_by_samples = false;  // what is saved of each sample lies by itself, one sample after the other
  std::string parameter_order{};  // in memory: equal texts, equal order
  // Per parameter, in its kernel's order, padding included; 0: as many as its slice has.
  std::vector<int64_t> parameter_elements{};
  bool backward_reads_inputs = true;
  bool backward_reads_outputs = true;
  bool in_place = false;                     // output 0 may take the memory of input 0, and so the gradients
  bool overwrites_output_gradients = false;  // a backward step writes there
  bool passes_output_gradient = false;       // every input's gradient is output gradient 0 itself
  int64_t forward_sums = 0, backward_sums = 0;  // numbers summed over the devices within the layer
  int kernel = -1;                              // the owner's handle
};

// Empty when no kernel runs this chain of layers as one (a chain of one layer is never refused).
using TaskOracle = std::function<std::optional<TaskFacts>(const Task&)>;

// This rank's share of an operation of the Placement, or of a chain of operations that one kernel runs, and
// the memory that it touches.
struct Work {
  using Kind = Placement::Operation::Kind;
  Kind kind = Kind::compute;
  std::vector<OperationIndex> operations{};
  std::vector<NodeIndex> nodes{};  // the chain's layers
  bool backward_only = false;      // it has no forward step (Placement::Operation::Gradients)
  std::vector<View> inputs{}, outputs{};
  std::vector<View> output_gradients{}, input_gradients{};
  // compute
  Task task{};
  TaskFacts facts{};
  std::vector<ParameterIndex> parameters{};  // all layers of the chain in order
  // Per parameter: the buffer of its gradient, if it passes (LowerOptions) or an earlier backward step has
  // already written the parameter's own. Nowhere: the parameter's own, or no gradient is wanted.
  std::vector<View> partial_gradients{};
  View saved{};
  // The gradients of the inputs are computed before those of the parameters.
  bool input_gradients_first = false;
  // copy, sum
  Movement movement{};
  // Another work's forward pass may be done in parts, of some of each rank's samples, in the same buffers
  // (halves.cpp).
  struct Part {
    WorkIndex whole{};          // the other work; nowhere: this work is no part
    int number = 0, count = 1;  // each rank's samples in `count` even runs
  };
  Part part{};

  bool is_layer() const { return kind == Kind::compute && !part.whole; }
};

// What one rank does in an iteration: buffers, and steps in order per lane. The same Program is run,
// simulated and drawn (docs/explanation/program.md).
struct Program {
  int rank = 0;
  std::shared_ptr<const Placement> placement;  // of all ranks
  IndexedVector<WorkIndex, Work> works;
  IndexedVector<StepIndex, Step> steps;
  IndexedVector<BufferIndex, Buffer> buffers;
  IndexedVector<ValueIndex, BufferIndex> value_buffers;  // this rank's part; nowhere: in a chain, too
  IndexedVector<ValueIndex, BufferIndex> value_gradient_buffers;  // the complete gradient
  int forward_end = 0;  // steps[0, forward_end) are the forward pass; a barrier follows, if anything does
  Bytes arena;

  // This rank's part of a tensor and of its gradient, if any; the whole where it is reported.
  BufferIndex tensor_buffer(TensorIndex tensor) const;
  BufferIndex gradient_buffer(TensorIndex tensor) const;
  // The box of that part.
  std::optional<Box> tensor_box(TensorIndex tensor) const;

  // The work itself; for a part, the work that it is part of.
  WorkIndex whole_of(WorkIndex work) const;
  // How a value of the placement lies over the ranks, as far as the samples of `work` go.
  Layout layout_of(ValueIndex value, const Work& work) const;

  // What an exchange step moves: the movement of its work, or the adjoint.
  Movement movement_of(const Step& step) const;
  // What the group of a step does together.
  Collective collective_of(const Step& step) const;

  // Of a work's chain.
  const Placement::Operation& first_operation(const Work& work) const;
  const Placement::Operation& last_operation(const Work& work) const;

  // The part of each source's batch that this rank reads.
  std::map<std::string, BatchPart> samples() const;

  // Those of a parameter's `elements` in memory that this rank updates: all, or its share where gradients are
  // summed at owners.
  Range updated_elements(ParameterIndex parameter, int64_t elements) const;

  View add_buffer(std::string name, Buffer::Kind kind, Bytes size, ElementType type = ElementType::f32);
  View whole(BufferIndex buffer) const;  // all of it

  std::string text(const Network& network) const;  // one line a step, for dumps and tests
};

Range part_of(const Range& samples, int number, int count);  // even runs; the first have what is over

std::string_view name_of(const Program& program, const Step& step);  // exchange: "allgather", ...
std::string name_of(const Work& work, const Network& network);       // "conv1+relu1", "to conv2", "conv3 1/2"
std::string layers_of(const Work& work, const Network& network);     // the same without "1/2"
std::string parameters_text(const Network& network, const Step& step);  // "fc8/weight and 5 more"
// Name for messages: "the sum of gradients of layer 'conv1' and 2 more", "layer 'conv1' forward".
std::string spoken(const Program& program, const Network& network, const Step& step);

}  // namespace cortado
