#include "cortado/train/resident_data.h"

#include <cmath>

#include "cortado/base/random.h"
#include "cortado/layers/source.h"

namespace cortado {
namespace {

// Classes of the label tensor `index`: channels of the first input of a layer that reads it beside another.
int64_t label_classes(const Network& network, TensorIndex index) {
  for (NodeIndex consumer : network.tensors()[index].consumers) {
    const Network::Node& node = network.nodes()[consumer];
    if (node.inputs.size() < 2 || node.inputs.front() == index) continue;
    const Shape& scores = network.tensors()[node.inputs.front()].shape;
    if (scores.rank() > 1) return scores[1];
  }
  return 1;
}

}  // namespace

ResidentData::ResidentData(const Network& network) {
  for (const Network::Node& node : network.nodes()) {
    if (!node.layer->is_source()) continue;
    LayerBatch& layer = layers_[node.name];
    for (size_t top = 0; top < node.outputs.size(); ++top) {
      const Shape& shape = network.tensors()[node.outputs[top]].shape;
      layer.tops.push_back(
          {shape, Box::whole(shape), top > 0 ? label_classes(network, node.outputs[top]) : 0, {}});
    }
  }
}

std::vector<const float*> ResidentData::batch(const std::string& name) {
  LayerBatch& layer = layers_.at(name);
  std::vector<const float*> pointers;
  for (size_t t = 0; t < layer.tops.size(); ++t) {
    Top& top = layer.tops[t];
    if (!layer.drawn) {
      RandomStream random{.seed = 1, .owner = RandomStream::owner_of(name + std::to_string(t))};
      top.values.reserve(static_cast<size_t>(top.box.shape().size()));
      for_each_run(Box::whole(top.shape), top.box, [&](int64_t first, int64_t count) {
        for (int64_t i = first; i < first + count; ++i) {
          double uniform = random.uniform(static_cast<uint64_t>(i));
          double value =
              top.classes > 0 ? std::floor(uniform * static_cast<double>(top.classes)) : 2 * uniform - 1;
          top.values.push_back(static_cast<float>(value));
        }
      });
    }
    pointers.push_back(top.values.data());
  }
  layer.drawn = true;
  return pointers;
}

std::map<std::string, BatchSource> ResidentData::sources(const std::map<std::string, BatchPart>& parts) {
  for (const auto& [layer, part] : parts)
    for (size_t top = 0; top < part.tops.size(); ++top) layers_.at(layer).tops[top].box = part.tops[top];
  std::map<std::string, BatchSource> sources;
  for (const auto& [layer, drawn] : layers_)
    sources[layer] = BatchSource([this, name = layer] { return batch(name); },
                                 [this, name = layer] { return BatchSource::Coming{batch(name)}; });
  return sources;
}

std::function<std::map<std::string, BatchSource>(const std::map<std::string, BatchPart>& parts)> drawn_anew(
    const Network& network) {
  return [&network, drawn = std::vector<std::shared_ptr<ResidentData>>()](
             const std::map<std::string, BatchPart>& parts) mutable {
    drawn.push_back(std::make_shared<ResidentData>(network));
    return drawn.back()->sources(parts);
  };
}

}  // namespace cortado
