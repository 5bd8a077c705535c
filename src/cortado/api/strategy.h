#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cortado/api/network.h"

namespace cortado::api {

// Replaces parts of a strategy's schedule: how messages are arranged in an iteration.
struct Schedule {
  std::string gradient_chunks{};  // parameter, layer, first:LAYERS, "4MiB", or one; empty: the strategy's
  bool no_late_updates = false;   // wait for all sums of gradients at the end of each iteration
  bool halves = false;            // half of a batch computes while the other half's halos travel
  std::vector<std::string> replicate{};  // layers, or patterns, whose replicas compute whole gradients each
  std::string
      recompute{};  // what is made again for the backward pass: none, all, auto; empty: the strategy's
  std::string memory_limit{};  // that a rank may hold, "2GiB": as little as it takes is made again
};

// How the layers of a network are cut over ranks or devices: by a name, which means something only together
// with a network and a number of devices, or rule by rule. It changes speed; results only by `batch_norm`
// and `precision` of its rules. A value.
class Strategy {
 public:
  // Makes the default: `auto` on several devices and `single` on one.
  Strategy();
  // auto, a built-in one (single, data, model, owt, spatial, replicated, server), random:SEED, or a file
  // (.json).
  Strategy(const std::string& name_or_file);
  Strategy(const char* name_or_file) : Strategy(std::string(name_or_file)) {}
  // JSON as a file has it. Throws UserError naming layer and key.
  static Strategy from_text(const std::string& json, const std::string& name_in_errors = "strategy");
  static std::vector<std::string> built_in();

  Strategy with(const Schedule& schedule) const;

  std::string name() const;
  // The JSON of a file. Throws UserError where the strategy is `auto`, or does not fit.
  std::string text(const Network& network, int devices) const;

  struct Impl;
  explicit Strategy(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }  // for Cortado's own sources

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace cortado::api
