#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cortado/api/machine.h"
#include "cortado/api/network.h"

namespace cortado::api {

struct SweepOptions {
  // What varies, a text each: "devices=4..64" (doubled; or "4,6,8"), "batch=256,32/device", "link=12,25"
  // (GB/s of the slowest links) or "link=network:12,25". What is left out has one value: all devices, the
  // network's batch, the links as they are.
  std::vector<std::string> axes;
  int64_t memory_bytes = 0;  // that a device may hold; 0: as the machine's smallest device
  int history = 1;           // tensors of a parameter's size that the solver keeps: 2 for Adam and AdaDelta
  std::string dimensions{};  // along which layers may be cut, letters of ncdhwr; empty: all
  int most_simulated =
      256;  // devices of a point that is simulated; others are added up, as if nothing were hidden
};

// A network planned and simulated on parts of a machine, with other batches and links. A value.
class Sweep {
 public:
  struct LinkGain {
    std::string links;   // a class: "network", "group-2" (within nodes), "bus", "node"
    double seconds = 0;  // of an iteration with them twice as fast, planned anew
  };
  struct Point {
    int devices = 0;
    int64_t batch = 0;          // samples of an iteration
    double bandwidth = 0;       // bytes a second of the links that vary; 0: none do
    double price_per_hour = 0;  // 0: the machine's file says none
    bool fits = true;           // else nothing below is known
    double seconds = 0;         // of an iteration
    bool simulated = true;
    double compute_seconds = 0, exchange_seconds = 0, sync_seconds = 0;  // their sum is the iteration
    double images_per_second = 0;
    double efficiency =
        0;  // images per second and device, against the first point of the same batch and links
    int64_t memory_bytes = 0;             // of the device that holds most
    double price_per_million_images = 0;  // 0: not known
    std::string bound;                    // "computing", "transfers", "gradient sums" or "memory"
    std::vector<LinkGain> twice_as_fast;
  };
  struct Smallest {
    int64_t batch = 0;
    bool per_device = false;  // the batch is each device's
    int devices = 0;          // 0: it fits on no part of the machine
    double price_per_hour = 0;
  };

  std::vector<Point> points() const;       // by batch, then bandwidth, then devices
  std::vector<Smallest> smallest() const;  // per batch: the fewest devices on which it fits

  std::string text() const;  // a table, as `cortado plan --sweep` prints it
  std::string csv() const;
  std::string json() const;
  std::string page() const;  // HTML

  struct Impl;
  explicit Sweep(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

// Throws UserError where an axis cannot be read, or names devices or links that the machine lacks.
Sweep sweep(const Network& network, const Machine& machine, const SweepOptions& options);

}  // namespace cortado::api
