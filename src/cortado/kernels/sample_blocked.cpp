#include <algorithm>
#include <bit>
#include <exception>
#include <span>
#include <string>
#include <type_traits>

#include "cortado/base/element_type.h"
#include "cortado/base/error.h"
#include "cortado/base/parallel_for.h"
#include "cortado/base/sum_tree.h"
#include "cortado/kernels/blocked.h"

namespace cortado {
namespace {

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// Where a block's part of a tensor begins in the device's part, in bytes. A tensor that all blocks share has
// its own memory for each of them while they are summed.
struct Place {
  int64_t offset = 0;
  bool shared = false;
};

Place place_of(const Box& part, const Box& held, ElementType type) {
  if (part == held) return {0, true};
  int64_t row = 1;
  for (int axis = 1; axis < held.rank(); ++axis) {
    ensure(part[axis] == held[axis], "a block of samples lies in one piece");
    row *= held[axis].size();
  }
  return {bytes_of((part[0].begin - held[0].begin) * row, type).count, false};
}

template <typename T>
T* moved(T* memory, int64_t bytes) {
  if (!memory) return nullptr;
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return reinterpret_cast<T*>(reinterpret_cast<Byte*>(memory) + bytes);
}

// One block: its kernel, and where its parts of the tensors lie.
struct Block {
  std::unique_ptr<Kernel> kernel;
  std::vector<Place> inputs, outputs;
};

// What blocks add to: results that are sums over samples.
struct Target {
  enum class Kind { output, input_gradient, parameter_gradient };
  Kind kind = Kind::output;
  size_t index = 0;
  int64_t elements = 0;
};

float*& pointer_of(Arguments& arguments, const Target& target) {
  switch (target.kind) {
    case Target::Kind::output:
      return arguments.outputs[target.index];
    case Target::Kind::input_gradient:
      return arguments.input_gradients[target.index];
    case Target::Kind::parameter_gradient:
      break;
  }
  return arguments.parameter_gradients[target.index];
}

// Scratch memory: of each worker's kernel; of each block's sums; of the nodes of the tree that are not yet
// added; copies of running statistics, which every block's forward pass writes.
class SampleBlockedKernel : public Kernel {
 public:
  SampleBlockedKernel(const Task& task, const std::vector<Task>& tasks,
                      std::vector<std::unique_ptr<Kernel>> kernels)
      : blocks_(tasks.size()), split_(task.layer().splits_backward()) {
    for (size_t b = 0; b < tasks.size(); ++b) {
      blocks_[b].kernel = std::move(kernels[b]);
      for (size_t i = 0; i < task.inputs.size(); ++i)
        blocks_[b].inputs.push_back(
            place_of(tasks[b].input_boxes[i], task.input_boxes[i], task.input_type(static_cast<int>(i))));
      for (size_t k = 0; k < task.outputs.size(); ++k)
        blocks_[b].outputs.push_back(
            place_of(tasks[b].output_boxes[k], task.output_boxes[k], task.output_type(static_cast<int>(k))));
    }
    workers_ = std::min(count(), compute_threads());
    find_targets(task);
    lay_out_scratch();
  }

  std::string name() const override {
    return first().name() + (count() > 1 ? ", " + std::to_string(count()) + " blocks" : ", one block");
  }

  void forward_partial(const Arguments& arguments) override {
    sum_numbers(arguments, forward_sums(), &Kernel::forward_partial);
  }
  void backward_partial(const Arguments& arguments) override {
    sum_numbers(arguments, backward_sums(), &Kernel::backward_partial);
  }
  void forward(const Arguments& arguments) override {
    for (size_t p = 0; p < written_.size(); ++p)
      for (int b = 1; b < count() && written_[p] > 0; ++b)
        std::copy_n(arguments.parameters[p], written_[p], written_copy(arguments, p, b));
    run(arguments, forward_targets_, &Kernel::forward);
  }
  void backward_weights(const Arguments& arguments) override {
    run(arguments, parameter_targets_, &Kernel::backward_weights);
  }
  void backward(const Arguments& arguments) override {
    std::vector<Target> targets = input_targets_;
    if (!split_) targets.insert(targets.end(), parameter_targets_.begin(), parameter_targets_.end());
    run(arguments, targets, &Kernel::backward);
  }

  int64_t forward_sums() const override { return first().forward_sums(); }
  int64_t backward_sums() const override { return first().backward_sums(); }
  Bytes saved_bytes() const override { return {count() * kernel_saved_}; }
  Bytes scratch_bytes() const override { return {scratch_}; }
  BackwardReads backward_reads() const override { return first().backward_reads(); }
  bool in_place() const override { return first().in_place(); }
  bool overwrites_output_gradients() const override { return first().overwrites_output_gradients(); }
  bool passes_output_gradient() const override { return first().passes_output_gradient(); }
  ParameterFormat parameter_format(int p) const override { return first().parameter_format(p); }

 private:
  using KernelPass = void (Kernel::*)(const Arguments&);

  int count() const { return static_cast<int>(blocks_.size()); }
  Kernel& first() const { return *blocks_.front().kernel; }

  void find_targets(const Task& task) {
    for (size_t k = 0; k < task.outputs.size(); ++k)
      if (blocks_[0].outputs[k].shared && task.layer().sums(static_cast<int>(k)))
        forward_targets_.push_back({Target::Kind::output, k, task.local_output(static_cast<int>(k)).size()});
    for (size_t i = 0; i < task.inputs.size(); ++i)
      if (blocks_[0].inputs[i].shared && task.input_gradients[i])
        input_targets_.push_back(
            {Target::Kind::input_gradient, i, task.local_input(static_cast<int>(i)).size()});
    size_t p = 0;
    for (size_t layer = 0; layer < task.layers.size(); ++layer) {
      const std::vector<ParameterSpec> specs =
          task.layers[layer]->parameters(layer == 0 ? std::span<const Shape>(task.inputs) : task.outputs);
      for (size_t own = 0; own < specs.size(); ++own, ++p) {
        const int64_t slice =
            task.parameter_box(static_cast<int>(layer), static_cast<int>(own)).shape().size();
        const int64_t padded = first().parameter_format(static_cast<int>(p)).elements;
        const int64_t elements = padded > 0 ? padded : slice;
        if (task.parameter_gradients[p])
          parameter_targets_.push_back({Target::Kind::parameter_gradient, p, elements});
        written_.push_back(specs[own].learnable ? 0 : elements);
      }
    }
  }

  static int64_t bytes(const std::vector<Target>& targets) {
    int64_t sum = 0;
    for (const Target& target : targets) sum += aligned(bytes_of(target.elements, ElementType::f32).count);
    return sum;
  }

  // Trees that are summed at a time, one by a worker: a power of two.
  int trees() const { return static_cast<int>(std::bit_floor(static_cast<unsigned>(workers_))); }
  // Nodes that each of so many trees keeps: its root, and one on each level below. Fewer trees keep fewer.
  int nodes(int trees) const {
    return static_cast<int>(std::bit_width(static_cast<unsigned>(count() / trees)));
  }

  void lay_out_scratch() {
    {
      const ComputeThreads alone(1);  // as it will run
      kernel_scratch_ = aligned(first().scratch_bytes().count);
      kernel_saved_ = aligned(first().saved_bytes().count);
    }
    sums_at_ = workers_ * kernel_scratch_;
    nodes_at_ =
        sums_at_ +
        aligned(count() * bytes_of(std::max(forward_sums(), backward_sums()), ElementType::f64).count);
    const int64_t most = std::max(bytes(forward_targets_), bytes(input_targets_) + bytes(parameter_targets_));
    copies_at_ = nodes_at_ + trees() * nodes(trees()) * most;
    copy_bytes_ = 0;
    for (int64_t elements : written_) copy_bytes_ += aligned(bytes_of(elements, ElementType::f32).count);
    scratch_ = copies_at_ + count() * copy_bytes_;
  }

  float* written_copy(const Arguments& arguments, size_t p, int b) const {
    int64_t at = copies_at_ + b * copy_bytes_;
    for (size_t before = 0; before < p; ++before)
      at += aligned(bytes_of(written_[before], ElementType::f32).count);
    return reinterpret_cast<float*>(arguments.scratch + at);
  }

  // What the kernel of block b gets when worker `worker` runs it.
  Arguments of_block(const Arguments& arguments, int b, int worker) const {
    Arguments part = arguments;
    const Block& block = blocks_[static_cast<size_t>(b)];
    auto move = [](auto& pointers, const std::vector<Place>& places) {
      for (size_t i = 0; i < pointers.size(); ++i) pointers[i] = moved(pointers[i], places[i].offset);
    };
    move(part.inputs, block.inputs);
    move(part.input_gradients, block.inputs);
    move(part.outputs, block.outputs);
    move(part.output_gradients, block.outputs);
    part.saved = moved(arguments.saved, b * kernel_saved_);
    part.scratch = moved(arguments.scratch, worker * kernel_scratch_);
    for (size_t p = 0; p < written_.size() && b > 0; ++p)
      if (written_[p] > 0) part.parameters[p] = written_copy(arguments, p, b);
    return part;
  }

  // Runs work(worker, first, last) on each worker, for its share of [0, items). One compute thread each.
  template <typename Work>
  void on_workers(int items, Work&& work) {
    const int workers = std::min({workers_, compute_threads(), items});
    std::vector<std::exception_ptr> failures(static_cast<size_t>(workers));
    parallel_for(workers, [&](int64_t worker) {
      const ComputeThreads alone(1);
      try {
        work(static_cast<int>(worker), static_cast<int>(items * worker / workers),
             static_cast<int>(items * (worker + 1) / workers));
      } catch (...) {
        failures[static_cast<size_t>(worker)] = std::current_exception();
      }
    });
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
  }

  void run(const Arguments& arguments, const std::vector<Target>& targets, KernelPass pass) {
    const bool sums = std::ranges::any_of(targets, [&](const Target& target) {
      Arguments given = arguments;
      return pointer_of(given, target) != nullptr;
    });
    if (sums && count() > 1) return run_summed(arguments, targets, pass);
    on_workers(count(), [&](int worker, int from, int to) {
      for (int b = from; b < to; ++b)
        (blocks_[static_cast<size_t>(b)].kernel.get()->*pass)(of_block(arguments, b, worker));
    });
  }

  // Where the sums of a node go, in the order of the targets.
  using Node = std::vector<float*>;

  void run_summed(const Arguments& arguments, const std::vector<Target>& targets, KernelPass pass) {
    const int roots =
        std::min(trees(), static_cast<int>(std::bit_floor(static_cast<unsigned>(compute_threads()))));
    const int64_t node_bytes = bytes(targets);
    auto node = [&](int tree, int level) {
      Node memory;
      int64_t at = nodes_at_ + (tree * nodes(roots) + level) * node_bytes;
      for (const Target& target : targets) {
        memory.push_back(reinterpret_cast<float*>(arguments.scratch + at));
        at += aligned(bytes_of(target.elements, ElementType::f32).count);
      }
      return memory;
    };
    Node result;
    Arguments given = arguments;
    for (const Target& target : targets) result.push_back(pointer_of(given, target));
    auto root = [&](int tree) { return tree == 0 ? result : node(tree, 0); };
    // Blocks [from, from + size) are summed in `into`; level and those above are free.
    auto sum = [&](auto& self, int worker, int tree, int from, int size, const Node& into,
                   int level) -> void {
      if (size == 1) {
        Arguments part = of_block(arguments, from, worker);
        for (size_t t = 0; t < targets.size(); ++t)
          if (result[t]) pointer_of(part, targets[t]) = into[t];
        (blocks_[static_cast<size_t>(from)].kernel.get()->*pass)(part);
        return;
      }
      self(self, worker, tree, from, size / 2, into, level);
      const Node right = node(tree, level);
      self(self, worker, tree, from + size / 2, size / 2, right, level + 1);
      for (size_t t = 0; t < targets.size(); ++t)
        if (result[t]) add(into[t], right[t], targets[t].elements);
    };
    const int size = count() / roots;
    on_workers(roots, [&](int worker, int from, int to) {
      for (int tree = from; tree < to; ++tree) sum(sum, worker, tree, tree * size, size, root(tree), 1);
    });
    const std::vector<int64_t> even(static_cast<size_t>(roots), 1);
    sum_in_tree(even, [&](size_t i, size_t j) {
      const Node into = root(static_cast<int>(i)), from = root(static_cast<int>(j));
      for (size_t t = 0; t < targets.size(); ++t) {
        if (!result[t]) continue;
        parallel_ranges(targets[t].elements, [&](int64_t begin, int64_t end) {
          add(into[t] + begin, from[t] + begin, end - begin);
        });
      }
    });
  }

  static void add(float* to, const float* from, int64_t elements) {
    for (int64_t i = 0; i < elements; ++i) to[i] += from[i];
  }

  void sum_numbers(const Arguments& arguments, int64_t numbers, KernelPass pass) {
    auto* all = reinterpret_cast<double*>(arguments.scratch + sums_at_);
    on_workers(count(), [&](int worker, int from, int to) {
      for (int b = from; b < to; ++b) {
        Arguments part = of_block(arguments, b, worker);
        part.sums = all + b * numbers;
        (blocks_[static_cast<size_t>(b)].kernel.get()->*pass)(part);
      }
    });
    const std::vector<int64_t> even(blocks_.size(), 1);
    sum_in_tree(even, [&](size_t i, size_t j) {
      for (int64_t n = 0; n < numbers; ++n)
        all[static_cast<int64_t>(i) * numbers + n] += all[static_cast<int64_t>(j) * numbers + n];
    });
    std::copy_n(all, numbers, arguments.sums);
  }

  std::vector<Block> blocks_;
  bool split_;
  int workers_ = 1;
  std::vector<Target> forward_targets_, input_targets_, parameter_targets_;
  std::vector<int64_t> written_;  // per parameter: elements, where the forward pass writes them; else 0
  int64_t kernel_scratch_ = 0, kernel_saved_ = 0, sums_at_ = 0, nodes_at_ = 0, copies_at_ = 0,
          copy_bytes_ = 0, scratch_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_sample_blocked(const Task& task, const std::vector<Task>& tasks,
                                            std::vector<std::unique_ptr<Kernel>> kernels) {
  return std::make_unique<SampleBlockedKernel>(task, tasks, std::move(kernels));
}

}  // namespace cortado
