#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cortado/base/box.h"
#include "cortado/base/element_type.h"
#include "cortado/device/host/host_runtime.h"
#include "cortado/device/memory.h"
#include "cortado/kernels/kernel.h"
#include "cortado/net/network.h"

namespace cortado {

// The part of each parameter that this rank holds, in the net's order; nothing where it holds none of it.
using ParameterSlices = IndexedVector<ParameterIndex, std::optional<Box>>;

using EntryIndex = TypedIndex<struct EntryTag>;  // of ParameterStore::entries()
// The entry of each parameter of one net.
using ParameterEntries = IndexedVector<ParameterIndex, EntryIndex>;

// The parameters of a training net and the test nets beside it, or this rank's slices of them, each in the
// memory order that its kernel wants. As in Caffe, layers of the same name in later nets share their
// parameters, whatever names the parameters have. Where two nets' kernels want different orders or slices, or
// only the later one wants gradients, the later net has a copy, which refresh() brings up to date.
class ParameterStore {
 public:
  // The device must outlive the store.
  explicit ParameterStore(device::DeviceRuntime& device = device::host()) : device_(&device) {}

  struct Entry {
    std::string name;  // "conv1/weight"
    ParameterSpec spec;
    ElementType type = ElementType::f32;
    bool held = true;  // false: another rank's; no elements, null pointers
    Box slice;         // of spec.shape; the whole unless the parameter is cut
    ParameterFormat format;
    int64_t elements = 0;  // in memory, padding included
    double lr_mult = 1, decay_mult = 1;
    bool wants_gradient = false;
    bool gradient_passes = false;  // it lies elsewhere (place_gradient)
    float* value = nullptr;        // in device memory
    float* gradient = nullptr;     // the same; null unless wanted, and placed
    EntryIndex copy_of{};          // this one is a reordered copy of that; nowhere: it is none
    int64_t canonical_size() const { return held ? slice.shape().size() : 0; }
  };

  // Declares the parameters of one net; `formats` (of the slices) and `slices` are in the net's order, and no
  // slices means that all are whole. Allocates new parameters and, where there is a seed, begin()s them. New
  // gradients lie one after the other, each on a boundary of 64 bytes: first those of `gradient_order`
  // (parameters of the net), then the others; those of `passing` get no memory here. Returns the entry of
  // each. Throws UserError when a layer of that name has other parameters in an earlier net, or a filler
  // gives what is not finite.
  ParameterEntries add(const Network& network, const IndexedVector<ParameterIndex, ParameterFormat>& formats,
                       std::optional<uint64_t> seed, const ParameterSlices& slices = {},
                       const std::vector<ParameterIndex>& gradient_order = {},
                       const std::vector<ParameterIndex>& passing = {});

  // Gives the entries of a net that add() returned their first values, but for those before `first`: by their
  // fillers (keyed by seed, name and the element's place in the whole parameter) or what the layer's program
  // says. Throws UserError where a filler gives what is not finite.
  void begin(const Network& network, const ParameterEntries& entries, uint64_t seed,
             EntryIndex first = EntryIndex(0));

  // Says where the gradient of an entry lies that passes, once.
  void place_gradient(EntryIndex entry, float* gradient);

  device::DeviceRuntime& device() const { return *device_; }
  const IndexedVector<EntryIndex, Entry>& entries() const { return entries_; }
  EntryIndex find(const std::string& name) const;  // the original of that name, if any
  // What an entry is a copy of, else the entry itself.
  EntryIndex original(EntryIndex entry) const;

  // Canonical order of the slice (row-major in slice.shape(); for a whole parameter the order of files) in
  // and out; also for arrays that lie in the same order as the parameter, such as solver history. The first
  // two take memory of the host.
  void to_canonical(EntryIndex entry, const float* own, float* canonical) const;
  void from_canonical(EntryIndex entry, const float* canonical, float* own) const;
  // Empty where it is not held. `memory`: of an array that is done with, to be used again.
  std::vector<float> canonical(EntryIndex entry, std::vector<float> memory = {}) const;
  void set(EntryIndex entry, std::span<const float> canonical);

  // The slice, in canonical order, of a whole tensor of the parameter's shape.
  std::vector<float> slice_of(EntryIndex entry, std::span<const float> whole) const;
  void set_from_whole(EntryIndex entry, std::span<const float> whole);

  // Brings all reordered copies up to date.
  void refresh();

 private:
  // A layer's parameters: their entries, and their shapes as the layer sees them.
  struct LayerView {
    std::vector<EntryIndex> originals;
    std::vector<Shape> shapes;
  };
  EntryIndex original_of(const Network& network, ParameterIndex parameter) const;
  EntryIndex add_entry(Entry entry, EntryIndex original);
  void remember_layers(const Network& network, const ParameterEntries& entries);
  void allocate(EntryIndex first, const std::vector<EntryIndex>& gradient_order);
  void fill(EntryIndex entry, uint64_t seed);
  void put(EntryIndex entry, const float* canonical);

  device::DeviceRuntime* device_;
  IndexedVector<EntryIndex, Entry> entries_;
  std::map<std::string, EntryIndex> originals_;  // by name
  std::map<std::string, LayerView> layers_;      // by name, of the nets so far
  std::vector<device::Memory> memory_;
};

}  // namespace cortado
