#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cortado/api/machine.h"
#include "cortado/api/network.h"
#include "cortado/api/strategy.h"

namespace cortado::api {

struct PlanOptions {
  int devices = 0;           // the first so many of the machine; 0: all
  int64_t memory_bytes = 0;  // that a device may hold; 0: as the machine's smallest device
  int history = 1;           // tensors of a parameter's size that the solver keeps: 2 for Adam and AdaDelta
  std::string dimensions{};  // along which layers may be cut, letters of ncdhwr; empty: all
  int frontier_points = 0;   // of the time-memory frontier; 0: it is not searched
};

// How a layer is cut: into how many parts along each dimension, over which devices.
struct Configuration {
  std::map<char, int> degrees;  // of n c d h w r, those above 1
  std::vector<int> devices;
  std::vector<double> weights;  // of unequal devices; empty: equal parts
  std::string sync;             // of gradients: allreduce, owner, server or replicate
};

// The cheapest way to cut each layer of a network over a machine, by costs in which nothing overlaps
// (docs/explanation/planning.md). All seconds are of one iteration. A value.
class Plan {
 public:
  struct Alternative {
    Configuration configuration;
    double adds_seconds = 0;  // to the iteration, all other layers chosen anew
  };
  struct Layer {
    std::string name;
    std::vector<std::string> with;  // layers that follow its configuration
    Configuration configuration;
    double compute_seconds = 0, sync_seconds = 0, transfer_seconds = 0;
    int64_t bytes = 0;         // that all devices send for it
    int64_t memory_bytes = 0;  // of the device that holds most
    std::optional<Alternative> runner_up, by_sample;
  };
  struct Baseline {
    std::string name;
    double seconds = 0;  // infinite: it cannot be
    int64_t bytes = 0, memory_bytes = 0;
    bool fits = true;
  };
  struct Tradeoff {
    double seconds = 0;
    int64_t memory_bytes = 0;
    bool fits = true, chosen = false;
  };

  double seconds() const;
  double lower_bound_seconds() const;  // no plan that fits takes less
  bool optimal() const;                // it is proven
  bool limited_by_memory() const;
  int64_t bytes() const;         // that all devices send
  int64_t memory_bytes() const;  // of the device that holds most
  std::vector<Layer> layers() const;
  std::vector<Baseline> baselines() const;  // the built-in strategies by the same costs
  std::vector<Tradeoff> frontier() const;
  Strategy strategy() const;

  std::string text() const;  // a table, as `cortado plan` prints it
  std::string json() const;  // as `cortado plan --json` writes it
  std::string page() const;  // HTML, as `cortado plan --report` writes it

  struct Impl;
  explicit Plan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }  // for Cortado's own sources

 private:
  std::shared_ptr<const Impl> impl_;
};

// Throws UserError: no plan fits the memory (with what would), fewer devices than asked for.
Plan plan(const Network& network, const Machine& machine, const PlanOptions& options = {});
Plan plan(const Network& network, const Machine& machine, int devices);

}  // namespace cortado::api
