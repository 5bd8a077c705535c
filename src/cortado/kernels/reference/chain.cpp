#include "cortado/kernels/reference/chain.h"

#include "cortado/base/error.h"
#include "cortado/kernels/reference/reference.h"

namespace cortado {
namespace {

// Input shapes of each layer of a chain, and as a last entry the chain's output.
std::vector<std::vector<Shape>> chain_shapes(const std::vector<LayerPtr>& layers,
                                             std::span<const Shape> inputs) {
  std::vector<std::vector<Shape>> shapes{std::vector<Shape>(inputs.begin(), inputs.end())};
  for (const LayerPtr& layer : layers) shapes.push_back({layer->output_shapes(shapes.back(), 1)[0]});
  return shapes;
}

// Boxes of the tensors between the layers, from the last layer's output box back.
void set_boxes(const Task& whole, std::vector<ChainLink>& links) {
  links.back().task.output_boxes = whole.output_boxes;
  for (size_t i = links.size(); i-- > 0;) {
    Task& task = links[i].task;
    if (i > 0) {
      Box box = task.layer().input_box(task.inputs, 0, 0, task.output_boxes[0]);
      links[i - 1].task.output_boxes = {box};
      task.input_boxes = {box};
    } else {
      task.input_boxes = whole.input_boxes;
    }
  }
}

template <typename T>
class ChainReference : public KernelOf<T> {
 public:
  explicit ChainReference(const Task& task) : split_(task.layer().splits_backward()) {
    for (ChainLink& link : chain_links(task)) {
      Stage stage{link, make_reference_kernel<T>(link.task)};
      ensure(stages_.empty() || stage.kernel->forward_sums() + stage.kernel->backward_sums() == 0,
             "a layer after the first of a chain sums over devices");
      stages_.push_back(std::move(stage));
    }
  }

  std::string name() const override { return "reference chain"; }

  // Layers that sum over devices are the first of a chain.
  int64_t forward_sums() const override { return stages_[0].kernel->forward_sums(); }
  int64_t backward_sums() const override { return stages_[0].kernel->backward_sums(); }
  void forward_partial(const ArgumentsOf<T>& a) override {
    stages_[0].kernel->forward_partial(stage_arguments(a, 0));
  }
  void backward_partial(const ArgumentsOf<T>& a) override {
    backward_after(a);
    stages_[0].kernel->backward_partial(stage_arguments(a, 0));
  }

  void forward(const ArgumentsOf<T>& a) override {
    for (size_t i = 0; i < stages_.size(); ++i) stages_[i].kernel->forward(stage_arguments(a, i));
  }

  void backward(const ArgumentsOf<T>& a) override {
    backward_after(a);
    stages_[0].kernel->backward(stage_arguments(a, 0));
  }

  void backward_weights(const ArgumentsOf<T>& a) override {
    if (!split_) return;
    backward_after(a);
    stages_[0].kernel->backward_weights(stage_arguments(a, 0));
  }

 private:
  struct Stage {
    ChainLink link;
    std::unique_ptr<KernelOf<T>> kernel;
    std::vector<T> output, output_gradient;  // unused in the last stage
    std::vector<std::byte> saved, scratch;
  };

  // Called at the first run: programs that are simulated alone ask kernels what they need, and run none.
  void allocate() {
    for (Stage& stage : stages_) {
      stage.output.resize(stage.link.task.local_output(0).size());
      stage.output_gradient.resize(stage.output.size());
      stage.saved.resize(stage.kernel->saved_bytes().count);
      stage.scratch.resize(stage.kernel->scratch_bytes().count);
    }
    allocated_ = true;
  }

  // The backward passes of all stages but the first.
  void backward_after(const ArgumentsOf<T>& a) {
    for (size_t i = stages_.size() - 1; i > 0; --i) {
      ArgumentsOf<T> arguments = stage_arguments(a, i);
      if (stages_[i].link.task.layer().splits_backward()) stages_[i].kernel->backward_weights(arguments);
      stages_[i].kernel->backward(arguments);
    }
  }

  ArgumentsOf<T> stage_arguments(const ArgumentsOf<T>& a, size_t i) {
    if (!allocated_) allocate();
    Stage& stage = stages_[i];
    const ChainLink& link = stage.link;
    bool first = i == 0, last = i + 1 == stages_.size(), backward = !a.output_gradients.empty();
    ArgumentsOf<T> result{.saved = stage.saved.data(),
                          .scratch = stage.scratch.data(),
                          .sums = a.sums,
                          .random = a.random,
                          .again = a.again};
    if (first) {
      result.inputs = a.inputs;
    } else {
      result.inputs = {stages_[i - 1].output.data()};
    }
    result.outputs = {last ? a.outputs[0] : stage.output.data()};
    if (backward) {
      result.output_gradients = {last ? a.output_gradients[0] : stage.output_gradient.data()};
      if (first) {
        result.input_gradients = a.input_gradients;
      } else {
        result.input_gradients = {stages_[i - 1].output_gradient.data()};
      }
    }
    for (int p = 0; p < link.parameter_count; ++p) {
      result.parameters.push_back(a.parameters[link.first_parameter + p]);
      if (backward) result.parameter_gradients.push_back(a.parameter_gradients[link.first_parameter + p]);
    }
    return result;
  }

  bool split_, allocated_ = false;
  std::vector<Stage> stages_;
};

}  // namespace

std::vector<ChainLink> chain_links(const Task& task) {
  auto shapes = chain_shapes(task.layers, task.inputs);
  std::vector<ChainLink> links;
  int parameters = 0;
  for (size_t i = 0; i < task.layers.size(); ++i) {
    ChainLink link{.first_parameter = parameters};
    link.task.layers = {task.layers[i]};
    link.task.phase = task.phase;
    link.task.inputs = shapes[i];
    link.task.outputs = {shapes[i + 1][0]};
    link.task.input_gradients = i == 0 ? task.input_gradients : std::vector<bool>{task.has_backward()};
    link.parameter_count = static_cast<int>(task.layers[i]->parameters(shapes[i]).size());
    for (int p = 0; p < link.parameter_count; ++p) {
      link.task.parameter_gradients.push_back(task.parameter_gradients[parameters + p]);
    }
    parameters += link.parameter_count;
    link.task.domain_box = task.domain_box;
    link.task.cut = task.cut;
    link.task.local_sums = task.local_sums;
    links.push_back(std::move(link));
  }
  set_boxes(task, links);
  return links;
}

Task chain_task(std::vector<LayerPtr> layers, Phase phase, std::span<const Shape> inputs) {
  Task task{.layers = std::move(layers), .phase = phase, .inputs = {inputs.begin(), inputs.end()}};
  task.outputs = chain_shapes(task.layers, inputs).back();
  for (const Shape& shape : task.inputs) task.input_boxes.push_back(Box::whole(shape));
  for (const Shape& shape : task.outputs) task.output_boxes.push_back(Box::whole(shape));
  task.domain_box = task.output_boxes[0];
  task.input_gradients.assign(inputs.size(), phase == Phase::train);
  for (const ParameterSpec& spec : task_parameters(task)) {
    task.parameter_gradients.push_back(phase == Phase::train && spec.learnable);
  }
  return task;
}

std::vector<ParameterSpec> task_parameters(const Task& task) {
  if (task.layers.size() == 1) return task.layer().parameters(task.inputs);
  auto shapes = chain_shapes(task.layers, task.inputs);
  std::vector<ParameterSpec> specs;
  for (size_t i = 0; i < task.layers.size(); ++i) {
    for (ParameterSpec& spec : task.layers[i]->parameters(shapes[i])) specs.push_back(std::move(spec));
  }
  return specs;
}

template <typename T>
std::unique_ptr<KernelOf<T>> make_chain_reference(const Task& task) {
  return std::make_unique<ChainReference<T>>(task);
}
template std::unique_ptr<KernelOf<float>> make_chain_reference<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_chain_reference<double>(const Task&);

}  // namespace cortado
