#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cortado/layers/task.h"
#include "cortado/net/network.h"

namespace cortado {

// What a Program must know of the kernel that will run a task; asked from whoever owns kernels.
struct TaskFacts {
  Bytes saved;    // kept from the forward to the backward step
  Bytes scratch;  // needed during a step only
  bool backward_reads_inputs = true;
  bool backward_reads_outputs = true;
  bool in_place = false;                     // output 0 may take the memory of input 0, and so the gradients
  bool overwrites_output_gradients = false;  // a backward step writes there
  bool passes_output_gradient = false;       // every input's gradient is output gradient 0 itself
  int kernel = -1;                           // the owner's handle
};

// Empty when no kernel runs this chain of layers as one (a chain of one layer is never refused).
using TaskOracle = std::function<std::optional<TaskFacts>(const Task&)>;

// A piece of memory with a life: from the step that first writes it to the step that last reads it.
struct Buffer {
  enum class Kind { batch, activation, gradient, saved, scratch };  // batch: lies in a reader's memory
  std::string name;
  Kind kind = Kind::activation;
  Bytes size;
  int first_step = -1, last_step = -1;
  int64_t offset = -1;  // in the arena; set by plan_buffers
};

// A task placed on this rank and the memory it touches (indices into Program::buffers; -1: none).
struct Work {
  Task task{};
  TaskFacts facts{};
  std::vector<int> nodes{};  // of the network: the chain's layers
  std::vector<int> inputs{}, outputs{};
  std::vector<int> output_gradients{}, input_gradients{};
  std::vector<int> parameters{};  // of the network, all layers of the chain in order
  // Per parameter: where its gradient goes. -1: the parameter's own gradient (or none is wanted); else a
  // buffer, when a layer before in backward order already wrote the parameter's own.
  std::vector<int> partial_gradients{};
  int saved = -1;
};

enum class Lane { compute, communication };

struct Step {
  enum class Kind {
    load,  // bring in the next batch of source `work`
    forward,
    seed,  // fill the gradient of a loss (writes[0]) with its weight
    backward_weights,
    backward,
    accumulate,            // writes[0] = sum of reads
    accumulate_parameter,  // gradient of `parameter` += reads[0]
    update,                // `parameter` by its gradient
  };
  Kind kind = Kind::forward;
  Lane lane = Lane::compute;
  int work = -1;
  int parameter = -1;
  double value = 0;                    // seed
  int scratch = -1;                    // buffer
  std::vector<int> reads{}, writes{};  // buffers
  std::vector<int> waits{};            // steps of the other lane that must have ended
};

// What one rank does in an iteration: buffers, and steps in order per lane. The same Program is run,
// simulated and drawn (docs/design.md, section 5).
struct Program {
  std::vector<Work> works;
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
  std::vector<int> tensor_buffers;    // per network tensor: its activation; -1 inside a fused chain
  std::vector<int> gradient_buffers;  // per network tensor: its complete gradient; -1: none
  int forward_steps = 0;              // steps[0, forward_steps) are the forward pass
  Bytes arena;

  std::string text(const Network& network) const;  // one line a step, for dumps and tests
};

std::string_view name_of(Step::Kind kind);
std::string name_of(const Work& work, const Network& network);  // "conv1+relu1"

}  // namespace cortado
