#include <map>
#include <utility>

#include "cortado/program/passes.h"

namespace cortado {
namespace {

// Says where chunks end while the gradients of one group pass by in backward order; the same at every rank.
class ChunkEnds {
 public:
  ChunkEnds(const Program& program, const Network& network, const GradientChunks& chunks)
      : program_(program), network_(network), chunks_(chunks) {}

  // True when a chunk ends before `parameter`, the next one.
  bool before(ParameterIndex parameter) {
    const NodeIndex layer = network_.parameters()[parameter].declared_by;
    const bool other_layer = layer != layer_;
    if (other_layer) ++layers_;
    layer_ = layer;
    const bool ends = ended(other_layer);
    if (ends) bytes_ = {};
    const auto& slice = program_.placement->slices[parameter];
    bytes_ += bytes_of(slice[static_cast<size_t>(program_.rank)]->shape(),
                       program_.placement->parameter_types[parameter]);
    return ends;
  }

 private:
  bool ended(bool other_layer) const {
    switch (chunks_.kind) {
      case GradientChunks::Kind::parameter:
        return true;
      case GradientChunks::Kind::layer:
        return other_layer;
      case GradientChunks::Kind::first:
        return other_layer && layers_ == chunks_.layers + 1;
      case GradientChunks::Kind::bytes:
        return bytes_ >= chunks_.bytes;
      case GradientChunks::Kind::one:
        break;
    }
    return false;
  }

  const Program& program_;
  const Network& network_;
  const GradientChunks& chunks_;
  NodeIndex layer_;  // the last one
  int layers_ = 0;   // so far
  Bytes bytes_;      // of the open chunk
};

}  // namespace

void chunk_gradients(Program& program, const Network& network, const GradientChunks& chunks) {
  struct Group {
    ChunkEnds ends;
    steps::SumGradient* open = nullptr;  // the last sum so far, which has taken over those of its chunk
  };
  std::map<RankGroup, Group> groups;
  for (Step& step : program.steps) {
    auto* sum = step.as<steps::SumGradient>();
    if (!sum) continue;
    Group& group = groups.try_emplace(sum->group, Group{ChunkEnds(program, network, chunks)}).first->second;
    const bool joins = !group.ends.before(sum->parameters[0]) && group.open != nullptr;
    if (joins) {
      group.open->parameters.push_back(sum->parameters[0]);
      sum->parameters = std::exchange(group.open->parameters, {});
    }
    group.open = sum;
  }
  erase_if(program.steps,
           [](const Step& step) { return step.is<steps::SumGradient>() && step.parameters().empty(); });
}

}  // namespace cortado
