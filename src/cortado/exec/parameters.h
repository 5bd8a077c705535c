#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "cortado/exec/memory.h"
#include "cortado/kernels/kernel.h"
#include "cortado/net/network.h"

namespace cortado {

// The parameters of a training net and the test nets beside it, each in the memory order its kernel wants.
// Nets share a parameter by name. Where two nets' kernels want different orders, the later net has a copy,
// which refresh() brings up to date.
class ParameterStore {
 public:
  struct Entry {
    std::string name;  // "conv1/weight"
    ParameterSpec spec;
    ParameterFormat format;
    int64_t elements = 0;  // in memory, padding included
    double lr_mult = 1, decay_mult = 1;
    bool wants_gradient = false;
    float* value = nullptr;
    float* gradient = nullptr;  // null unless wanted
    int copy_of = -1;           // entry this one is a reordered copy of
  };

  // Declares the parameters of one net, `formats` in the net's order, allocates and fills new ones by their
  // fillers (keyed by seed and name). Returns the entry of each. Throws UserError when a parameter of that
  // name has another shape in an earlier net.
  std::vector<int> add(const Network& network, const std::vector<ParameterFormat>& formats, uint64_t seed);

  const std::vector<Entry>& entries() const { return entries_; }
  int find(const std::string& name) const;  // the original of that name; -1: none

  // Canonical order (row-major in spec.shape, the order of files) in and out; also for arrays that lie in
  // the same order as the parameter, such as solver history.
  void to_canonical(int entry, const float* own, float* canonical) const;
  void from_canonical(int entry, const float* canonical, float* own) const;
  std::vector<float> canonical(int entry) const;
  void set(int entry, std::span<const float> canonical);

  // Brings all reordered copies up to date.
  void refresh();

 private:
  int add_entry(const std::string& net, const Network::Parameter& parameter, const ParameterFormat& format);
  void allocate(size_t first);
  void fill(size_t first, uint64_t seed);

  std::vector<Entry> entries_;
  std::map<std::string, int> originals_;
  std::vector<Memory> memory_;
};

}  // namespace cortado
