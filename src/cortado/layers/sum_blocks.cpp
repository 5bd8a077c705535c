#include "cortado/layers/sum_blocks.h"

#include <set>
#include <string_view>

#include "cortado/layers/convolution.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/pooling.h"

namespace cortado {
namespace {

constexpr int most_blocks = 8;

int blocks_of(int64_t extent) {
  int blocks = 1;
  while (blocks < most_blocks && extent % (2 * blocks) == 0) blocks *= 2;
  return blocks;
}

// Of `blocks` blocks along the first axis of the domain.
Box first_block(const Shape& domain, int blocks) {
  Box box = Box::whole(domain);
  box[0].end = domain[0] / blocks;
  return box;
}

// The part of a parameter that a part of the domain needs: of a bias per sample, say, those of its samples.
Box parameter_of(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs,
                 int parameter, const Box& domain_box) {
  const Box read = inputs.empty() ? Box{} : read_box(layer, inputs, outputs, 0, domain_box);
  return layer.parameter_box(inputs, parameter, domain_box, read);
}

// A part that is the whole, or a run of samples of it.
bool in_one_piece(const Box& part, const Box& whole, int blocks) {
  if (part == whole) return true;
  for (int axis = 1; axis < whole.rank(); ++axis)
    if (part[axis] != whole[axis]) return false;
  return whole.rank() > 0 && part[0].begin == 0 && part[0].end * blocks == whole[0].end;
}

}  // namespace

int sample_blocks(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  const Shape domain = layer.domain(inputs, outputs);
  if (domain.rank() == 0 || !layer.cuts(inputs).n) return 1;
  const int blocks = blocks_of(domain[0]);
  const Box block = first_block(domain, blocks), all = Box::whole(domain);
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i)
    if (!in_one_piece(read_box(layer, inputs, outputs, i, block), read_box(layer, inputs, outputs, i, all),
                      blocks))
      return 1;
  for (int p = 0; p < static_cast<int>(layer.parameters(inputs).size()); ++p)
    if (parameter_of(layer, inputs, outputs, p, block) != parameter_of(layer, inputs, outputs, p, all))
      return 1;
  for (int k = 0; k < static_cast<int>(outputs.size()); ++k)
    if (!in_one_piece(layer.output_box(inputs, outputs, k, block), Box::whole(outputs[k]), blocks)) return 1;
  return blocks;
}

bool has_fixed_products(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  if (const ConvolutionOptions* options = convolution_options(layer)) return options->group == 1;
  return layer.type() == "InnerProduct" && layer.cuts(inputs).c && outputs[0].rank() == 2;
}

int channel_blocks(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs) {
  return has_fixed_products(layer, inputs, outputs) ? blocks_of(outputs[0][1]) : 1;
}

bool channels_stand_alone(const Layer& layer) {
  if (const auto* pooling = dynamic_cast<const Pooling*>(&layer))
    return pooling->options().method == PoolingOptions::Method::max;
  static const std::set<std::string_view> types = {"Concat", "Crop",  "Dropout", "Eltwise",
                                                   "ReLU",   "Slice", "Split"};
  return types.contains(layer.type());
}

bool shared_by_samples(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs,
                       int input) {
  const int blocks = sample_blocks(layer, inputs, outputs);
  const Shape domain = layer.domain(inputs, outputs);
  return blocks > 1 && read_box(layer, inputs, outputs, input, first_block(domain, blocks)) ==
                           read_box(layer, inputs, outputs, input, Box::whole(domain));
}

std::vector<Task> tasks_of_blocks(const Task& task, int axis, int blocks) {
  const Layer& layer = task.layer();  // layers after it in a chain have its domain
  const int64_t size = layer.domain(task.inputs, task.outputs)[axis] / blocks;
  std::vector<Task> tasks;
  for (int64_t begin = task.domain_box[axis].begin; begin < task.domain_box[axis].end; begin += size) {
    Task part = task;
    part.cut = true;
    part.domain_box[axis] = {begin, begin + size};
    for (size_t k = 0; k < task.outputs.size(); ++k)
      part.output_boxes[k] =
          layer.output_box(task.inputs, task.outputs, static_cast<int>(k), part.domain_box);
    for (size_t i = 0; i < task.inputs.size(); ++i)
      part.input_boxes[i] = read_box(layer, task.inputs, task.outputs, static_cast<int>(i), part.domain_box);
    tasks.push_back(std::move(part));
  }
  return tasks;
}

bool is_node(const Range& range, int64_t extent, int blocks) {
  const int64_t size = extent / blocks, count = range.size() / size;
  if (count == 0 || range.begin % size != 0 || range.size() % size != 0) return false;
  return (count & (count - 1)) == 0 && range.begin % (count * size) == 0;
}

}  // namespace cortado
