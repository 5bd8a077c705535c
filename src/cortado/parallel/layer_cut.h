#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cortado/parallel/config.h"
#include "cortado/parallel/layout.h"

namespace cortado {

// The boxes of a layer's tensors that the ranks read, compute and own under a configuration
// (docs/explanation/cutting.md); none where a rank has no part in the layer. Lowering and planner share it.
struct LayerCut {
  Layout domain;              // its share of the layer's domain
  std::vector<Layout> reads;  // per input: what computing that share reads
  // Per output: the part computed; addends where r is cut or the output is a sum.
  std::vector<Layout> computes;
  std::vector<Layout> owns;    // per output: who holds it once addends are summed; no element twice
  std::vector<Layout> slices;  // per parameter
  // What all devices with its slices of the parameters compute together, and what they read of input 0; a
  // scalar where there are no inputs.
  Layout replicas_domain, replicas_reads;
};

// The same for one device, by its index in the configuration. All that it is given must outlive it.
class LayerCutter {
 public:
  LayerCutter(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs,
              const ParallelConfig& config);

  Box domain(int index) const { return domain_block(domain_, config_, index); }
  Box reads(int input, int index) const;  // may be empty; a scalar where there are no inputs
  Box computes(int output, int index) const;
  std::optional<Box> owns(int output, int index) const;
  Box slice(int parameter, int index) const;
  Box replicas_domain(int index) const;
  Box replicas_reads(int index) const;

 private:
  Range summed_channels(int index) const;  // of input 0, where r is cut

  const Layer& layer_;
  std::span<const Shape> inputs_, outputs_;
  const ParallelConfig& config_;
  Shape domain_;
  int bias_after_;  // the number of the bias, where it is added where partial sums are owned; -1: none is
};

// Whether each device's part of a layer with parameters reads some of input 0. At an edge a part may be so
// small that its windows lie in the padding alone. Always true for layers without parameters: their parts may
// do so.
bool parts_read(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs,
                const ParallelConfig& config);

// `inputs` and `outputs` are global shapes, `config` one that check_config() passes.
LayerCut cut_layer(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs,
                   const ParallelConfig& config, int ranks);

}  // namespace cortado
