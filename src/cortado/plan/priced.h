#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cortado/base/element_type.h"
#include "cortado/cost/cost_model.h"
#include "cortado/cost/grid_layout.h"
#include "cortado/net/network.h"
#include "cortado/parallel/strategy.h"
#include "cortado/plan/groups.h"

namespace cortado::plan {

// What a group costs under one configuration: the terms of Eq. 1 that need no neighbour (layer-wise
// parallelism, section 4), of the slowest device.
struct Priced {
  LayerStrategy strategy;  // of the first layer
  TaskTime compute;
  Seconds first;                 // computing of the first device that it is on
  Seconds sums;                  // within the layers: partial sums of r, statistics of batch normalization
  Seconds sync;                  // of the gradients
  Seconds update;                // of the parameters
  Bytes sums_bytes, sync_bytes;  // that all devices send for them
  // Bytes of parameters on the device that holds most: with their gradients, the solver's history, and what
  // is gathered for whole gradients, which lies there until the next iteration.
  Bytes parameters;
  Bytes memory;                             // what the search counts for it (memory.h)
  std::vector<GridLayout> reads{}, owns{};  // inputs of the first layer, outputs of the last one
  std::vector<ElementType> read_types{}, own_types{};
  // What allreduce would take more, where owners sum the gradients.
  Seconds more_by_allreduce;
  Bytes more_parameters_by_allreduce;
  // What servers (GradientSync::server) would take more.
  Bytes more_bytes_by_servers, more_parameters_by_servers;
  Seconds sync_by_servers, update_by_servers;  // in all
  Seconds more_by_servers() const { return sync_by_servers + update_by_servers - sync - update; }
  Seconds total() const { return compute.total() + sums + sync + update; }
};

// The candidates of a vertex. Copies share them until one of them changes.
class Candidates {
 public:
  explicit Candidates(std::vector<Priced> list)
      : list_(std::make_shared<std::vector<Priced>>(std::move(list))) {}
  size_t size() const { return list_->size(); }
  const Priced& operator[](size_t i) const { return (*list_)[i]; }
  const Priced& at(size_t i) const { return list_->at(i); }
  std::vector<Priced>::const_iterator begin() const { return list_->cbegin(); }
  std::vector<Priced>::const_iterator end() const { return list_->cend(); }
  void set(size_t i, Priced priced) {
    if (list_.use_count() > 1) list_ = std::make_shared<std::vector<Priced>>(*list_);
    (*list_)[i] = std::move(priced);
  }
  bool shares_with(const Candidates& other) const { return list_ == other.list_; }

 private:
  std::shared_ptr<std::vector<Priced>> list_;
};

// Bytes of the device that has most of it; of outputs, of each, and where `type` is given as that.
Bytes largest(const GridLayout& layout, ElementType type);
Bytes largest_outputs(const Priced& priced, std::optional<ElementType> type = {});
Bytes largest_input(const Priced& priced, size_t i);
// Elements of all devices together; where they read more than there are, one of them holds a copy of its own.
int64_t elements(const GridLayout& layout);

// What one group holds from its forward to its backward pass, whatever its neighbours take: `parameters`,
// outputs, and copies of inputs that no layout of the producer could spare. The search adds these up.
Bytes held_bytes(const Network& network, const Group& group, const Priced& priced);

}  // namespace cortado::plan
