#include "cortado/net/net_file.h"

#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/layers/source.h"
#include "cortado/net/text_format.h"

namespace cortado {

std::vector<Shape> declared_source_shapes(const LayerDeclaration& layer) {
  const auto* source = dynamic_cast<const Source*>(layer.layer.get());
  ensure(source != nullptr, "declared_source_shapes is for source layers");
  const SourceOptions& options = source->options();
  if (options.shapes.empty() && options.kind == SourceOptions::Kind::input) {
    throw UserError(
        "it has no shape; add input_param { shape { dim: ... } }, or give an input shape where one can be "
        "given");
  }
  if (options.shapes.empty()) {
    throw UserError(fmt::format("the shapes of a {} layer are only known to its data", source->type()));
  }
  if (options.kind != SourceOptions::Kind::memory_data) return options.shapes;
  Shape images{options.batch_size};
  for (int64_t extent : options.shapes[0].extents()) images.append(extent);
  return {images, Shape{options.batch_size}};
}

caffe::NetState net_state(Phase phase, int level, const std::vector<std::string>& stages) {
  return net_state(NetFile{}, phase, level, stages);
}

caffe::NetState net_state(const NetFile& file, Phase phase, int level,
                          const std::vector<std::string>& stages) {
  caffe::NetState state = file.net.state();
  state.set_phase(phase == Phase::train ? caffe::TRAIN : caffe::TEST);
  state.set_level(level);
  for (const std::string& stage : stages) state.add_stage(stage);
  return state;
}

void write_net(const std::string& path, const caffe::NetParameter& net) {
  caffe::NetParameter bare = net;
  for (caffe::LayerParameter& layer : *bare.mutable_layer()) layer.clear_blobs();
  write_text(path, bare);
}

}  // namespace cortado
