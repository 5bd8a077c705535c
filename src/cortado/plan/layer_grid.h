#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "cortado/cost/grid_layout.h"
#include "cortado/parallel/layer_cut.h"

namespace cortado::plan {

// Layouts of one kind of box (a function of LayerCutter) under many configurations. A range along an axis
// depends only on the coordinates that change it. So the layouts of all configurations follow from a few that
// cut one dimension, or two where both change an axis. Configurations over other devices than the first ones
// in order, and those in which devices hold nothing, are made box by box.
class BoxGrid {
 public:
  using BoxOf = std::function<Box(const LayerCutter&, int index)>;
  using CutterOf = std::function<LayerCutter(const ParallelConfig&)>;
  BoxGrid(CutterOf cutter_of, BoxOf box_of, int ranks);

  GridLayout layout(const ParallelConfig& config);

 private:
  static constexpr size_t dimensions = 6;
  using DegreeList = std::array<int, dimensions>;  // n d h w c r, as devices are counted
  // Per axis, the range of each combination of coordinates; empty: nothing changes.
  using Ranges = std::vector<std::vector<Range>>;

  // What each cut dimension of a configuration changes, and every how many devices its coordinate grows.
  struct Cut {
    size_t dimension;
    int degree, stride;
    const Ranges* alone;
    int64_t key() const {  // of dimension, degree and stride; not 0
      return (int64_t{stride} << 32 | degree) * static_cast<int64_t>(dimensions) +
             static_cast<int64_t>(dimension);
    }
  };
  using Cuts = std::span<const Cut>;
  const Ranges& alone(size_t dimension, int degree);
  Ranges ranges_of(const DegreeList& degrees) const;
  GridLayout of_first_devices(const ParallelConfig& config);
  GridLayout::AxisPtr axis(size_t axis, Cuts cuts);
  GridLayout::AxisPtr made(const std::vector<Range>& ranges, Cuts cuts) const;
  GridLayout box_by_box(const ParallelConfig& config) const;

  CutterOf cutter_of_;
  BoxOf box_of_;
  int ranks_;
  Box whole_;
  bool known_ = false;
  std::array<std::map<int, Ranges>, dimensions> alone_;  // per dimension and degree
  // A number from 1, then each cut that changes something (Cut::key), then zeros.
  using Key = std::array<int64_t, 1 + dimensions>;
  struct HashOfKey {
    size_t operator()(const Key& key) const;
  };
  std::unordered_map<Key, GridLayout::AxisPtr, HashOfKey> axes_;  // by axis and the cuts that change it
  // Over the first devices, by their number, where some cuts change nothing.
  std::unordered_map<Key, GridLayout, HashOfKey> layouts_;
  // The last layout over the first devices: a configuration is often asked for several times.
  Degrees last_degrees_;
  std::optional<GridLayout> last_;
};

// All layouts of a layer. Layer and shapes must outlive it.
class LayerGrid {
 public:
  LayerGrid(const Layer& layer, std::span<const Shape> inputs, std::span<const Shape> outputs, int ranks);

  GridLayout domain(const ParallelConfig& config) { return domain_->layout(config); }
  GridLayout reads(int input, const ParallelConfig& config) { return of(reads_, input).layout(config); }
  GridLayout computes(int output, const ParallelConfig& config) {
    return of(computes_, output).layout(config);
  }
  GridLayout owns(int output, const ParallelConfig& config);
  GridLayout slices(int parameter, const ParallelConfig& config) {
    return of(slices_, parameter).layout(config);
  }
  // Only layers with parameters have these (LayerCut).
  GridLayout replicas_domain(const ParallelConfig& config) { return replicas_domain_->layout(config); }
  GridLayout replicas_reads(const ParallelConfig& config) { return replicas_reads_->layout(config); }

 private:
  static BoxGrid& of(std::vector<BoxGrid>& list, int i) { return list[static_cast<size_t>(i)]; }

  const Layer& layer_;
  std::span<const Shape> outputs_;
  int ranks_;
  std::unique_ptr<BoxGrid> domain_, replicas_domain_, replicas_reads_;
  std::vector<BoxGrid> reads_, computes_, owns_, slices_;
};

}  // namespace cortado::plan
