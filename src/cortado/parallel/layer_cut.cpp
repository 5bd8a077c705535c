#include "cortado/parallel/layer_cut.h"

#include "cortado/base/error.h"

namespace cortado {
namespace {

class Cutter {
 public:
  Cutter(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs,
         const ParallelConfig& config, int ranks)
      : layer_(layer), inputs_(inputs), outputs_(outputs), config_(config), ranks_(ranks) {}

  LayerCut run() {
    LayerCut cut;
    const Shape domain = layer_.domain(inputs_, outputs_);
    cut.domain = each([&](int index) { return domain_block(domain, config_, index); });
    for (int i = 0; i < static_cast<int>(inputs_.size()); ++i) {
      cut.reads.push_back(each([&](int index) { return read_box(i, *cut.domain[device(index)], index); }));
      for (auto& box : cut.reads.back()) {
        if (box && box->empty()) box.reset();
      }
    }
    for (int k = 0; k < static_cast<int>(outputs_.size()); ++k) {
      cut.computes.push_back(each(
          [&](int index) { return layer_.output_box(inputs_, outputs_, k, *cut.domain[device(index)]); }));
      cut.owns.push_back(owners(k, cut.computes.back()));
    }
    add_slices(cut);
    return cut;
  }

 private:
  size_t device(int index) const { return static_cast<size_t>(config_.devices[static_cast<size_t>(index)]); }

  template <typename BoxOf>
  Layout each(BoxOf&& box_of) const {
    Layout layout(static_cast<size_t>(ranks_));
    for (int index = 0; index < static_cast<int>(config_.devices.size()); ++index) {
      layout[device(index)] = box_of(index);
    }
    return layout;
  }

  Box read_box(int input, const Box& domain, int index) const {
    Box box = layer_.input_box(inputs_, input, 0, domain);
    for (int k = 1; k < static_cast<int>(outputs_.size()); ++k) {
      if (layer_.sums(k)) continue;  // reads what output 0 does
      const Box more = layer_.input_box(inputs_, input, k, layer_.output_box(inputs_, outputs_, k, domain));
      if (box.empty()) {
        box = more;
      } else if (!more.empty()) {
        box = box.hull(more);
      }
    }
    if (config_.degrees.r > 1 && input == 0)
      box[1] = block_of(inputs_[0][1], config_.degrees.r, coordinates_of(config_.degrees, index).r);
    return box;
  }

  Layout owners(int output, const Layout& computed) const {
    if (config_.degrees.r > 1)
      return each(
          [&](int index) { return summed_block(outputs_[static_cast<size_t>(output)], config_, index); });
    if (config_.devices.size() == 1 || !layer_.sums(output)) return computed;
    Layout first(static_cast<size_t>(ranks_));
    first[device(0)] = Box::whole(outputs_[static_cast<size_t>(output)]);
    return first;
  }

  // Behind partial sums, a bias is added where the sum is owned.
  void add_slices(LayerCut& cut) const {
    const int count = static_cast<int>(layer_.parameters(inputs_).size());
    const bool bias_behind = config_.degrees.r > 1 && layer_.without_bias() != nullptr;
    for (int p = 0; p < count; ++p) {
      const Layout& domain = bias_behind && p == count - 1 ? cut.owns[0] : cut.domain;
      cut.slices.push_back(each([&](int index) {
        const auto& read = cut.reads[0][device(index)];
        ensure(read.has_value(), "a layer with parameters reads nothing");
        return layer_.parameter_box(inputs_, p, *domain[device(index)], *read);
      }));
    }
  }

  const Layer& layer_;
  std::span<const Shape> inputs_, outputs_;
  const ParallelConfig& config_;
  int ranks_;
};

}  // namespace

LayerCut cut_layer(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs,
                   const ParallelConfig& config, int ranks) {
  return Cutter(layer, inputs, outputs, config, ranks).run();
}

}  // namespace cortado
