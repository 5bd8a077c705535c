#include "cortado/exec/parameters.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "cortado/base/error.h"
#include "cortado/base/finite.h"
#include "cortado/device/host_view.h"
#include "cortado/kernels/arrays.h"
#include "cortado/layers/filler.h"
#include "cortado/layers/user_defined.h"

namespace cortado {
namespace {

int64_t bytes_of(const ParameterStore::Entry& entry) {
  return (bytes_of(entry.elements, entry.type).count + 63) / 64 * 64;
}

ParameterStore::Entry entry_of(const Network::Parameter& parameter, const ParameterFormat& format,
                               const std::optional<Box>& slice) {
  ParameterStore::Entry entry;
  entry.name = parameter.name;
  entry.spec = parameter.spec;
  entry.type = parameter.type;
  entry.held = slice.has_value();
  entry.lr_mult = parameter.lr_mult;
  entry.decay_mult = parameter.decay_mult;
  entry.wants_gradient = parameter.wants_gradient;
  if (!entry.held) return entry;
  ensure(Box::whole(entry.spec.shape).contains(*slice), "a slice beyond its parameter");
  entry.slice = *slice;
  entry.format = format;
  entry.elements = format.elements > 0 ? format.elements : entry.canonical_size();
  return entry;
}

// "5x3, 5"
std::string shapes_text(const std::vector<Shape>& shapes) {
  std::string text;
  for (const Shape& shape : shapes) text += (text.empty() ? "" : ", ") + shape.text();
  return text;
}

// Programs give the parameters of their layers first values. `first`: of the entries that are new.
void take_first_values(ParameterStore& store, const Network& network, const ParameterEntries& entries,
                       EntryIndex first) {
  for (const Network::Node& node : network.nodes()) {
    const auto* layer = dynamic_cast<const UserDefined*>(node.layer.get());
    if (layer == nullptr) continue;
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      const EntryIndex entry = entries[node.parameters[i]];
      const bool declares = &network.nodes()[network.parameters()[node.parameters[i]].declared_by] == &node;
      if (declares && entry >= first && store.original(entry) == entry)
        store.set(entry, layer->code().parameters.at(i)->values());
    }
  }
  store.refresh();
}

}  // namespace

ParameterEntries ParameterStore::add(const Network& network,
                                     const IndexedVector<ParameterIndex, ParameterFormat>& formats,
                                     std::optional<uint64_t> seed, const ParameterSlices& slices,
                                     const std::vector<ParameterIndex>& gradient_order,
                                     const std::vector<ParameterIndex>& passing) {
  ensure(slices.empty() || slices.size() == formats.size(), "a slice for each parameter or none");
  const EntryIndex first = entries_.end_index();
  ParameterEntries entries;
  for (ParameterIndex p : indices(formats)) {
    const Network::Parameter& parameter = network.parameters()[p];
    const auto slice = slices.empty() ? Box::whole(parameter.spec.shape) : slices[p];
    Entry entry = entry_of(parameter, formats[p], slice);
    entry.gradient_passes = std::ranges::find(passing, p) != passing.end();
    entries.push_back(add_entry(std::move(entry), original_of(network, p)));
  }
  remember_layers(network, entries);
  std::vector<EntryIndex> entries_in_order;
  for (ParameterIndex parameter : gradient_order) entries_in_order.push_back(entries[parameter]);
  allocate(first, entries_in_order);
  if (seed) begin(network, entries, *seed, first);
  return entries;
}

void ParameterStore::begin(const Network& network, const ParameterEntries& entries, uint64_t seed,
                           EntryIndex first) {
  for (EntryIndex entry : std::set(entries.begin(), entries.end()))
    if (entry >= first) fill(entry, seed);
  refresh();
  take_first_values(*this, network, entries, first);
}

// The entry of an earlier net that the layers of their names have for a parameter, if any.
EntryIndex ParameterStore::original_of(const Network& network, ParameterIndex parameter) const {
  EntryIndex original;
  for (NodeIndex user : network.parameters()[parameter].users) {
    const Network::Node& node = network.nodes()[user];
    auto known = layers_.find(node.name);
    if (known == layers_.end()) continue;
    const LayerView& layer = known->second;
    if (layer.shapes != node.parameter_shapes) {
      throw UserError(fmt::format("layer '{}' has parameters of {} in net '{}' but of {} in the net before",
                                  node.name, shapes_text(node.parameter_shapes), network.name(),
                                  shapes_text(layer.shapes)));
    }
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      if (node.parameters[i] != parameter) continue;
      if (original && layer.originals[i] != original) {
        throw UserError(fmt::format(
            "layer '{}' of net '{}' shares parameter '{}' with another layer, in the net before it has its "
            "own; share it in both",
            node.name, network.name(), network.parameters()[parameter].name));
      }
      original = layer.originals[i];
    }
  }
  return original;
}

void ParameterStore::remember_layers(const Network& network, const ParameterEntries& entries) {
  for (const Network::Node& node : network.nodes()) {
    if (node.parameters.empty()) continue;
    LayerView layer{.originals = {}, .shapes = node.parameter_shapes};
    for (ParameterIndex parameter : node.parameters) {
      const EntryIndex entry = entries[parameter], original = entries_[entry].copy_of;
      layer.originals.push_back(original ? original : entry);
    }
    layers_.emplace(node.name, std::move(layer));
  }
}

EntryIndex ParameterStore::add_entry(Entry entry, EntryIndex index) {
  const EntryIndex added = entries_.end_index();
  if (index) {
    const Entry& original = entries_[index];
    if (original.spec.shape != entry.spec.shape) {  // another layer owns it: both hold the whole
      entry.spec.shape = original.spec.shape;
      if (entry.held) entry.slice = Box::whole(original.spec.shape);
    }
    const bool lacks_gradient = entry.wants_gradient && !original.wants_gradient;
    if (original.held == entry.held && original.slice == entry.slice && original.format == entry.format &&
        !lacks_gradient)
      return index;
    ensure(!entry.held || (original.held && original.slice.contains(entry.slice)),
           "a later net needs more of a parameter than the first one holds");
    for (EntryIndex i : indices(entries_)) {
      const Entry& copy = entries_[i];
      if (copy.copy_of == index && copy.held == entry.held && copy.slice == entry.slice &&
          copy.format == entry.format && (copy.wants_gradient || !entry.wants_gradient))
        return i;
    }
    entry.copy_of = index;
  } else {
    originals_.emplace(entry.name, added);
  }
  entries_.push_back(std::move(entry));
  return added;
}

void ParameterStore::allocate(EntryIndex first, const std::vector<EntryIndex>& gradient_order) {
  Bytes total;
  for (EntryIndex i = first; i < entries_.end_index(); ++i) {
    const bool both = entries_[i].wants_gradient && !entries_[i].gradient_passes;
    total.count += bytes_of(entries_[i]) * (both ? 2 : 1);
  }
  memory_.emplace_back(total, *device_);
  int64_t offset = 0;
  for (EntryIndex i = first; i < entries_.end_index(); ++i) {
    if (!entries_[i].held) continue;
    entries_[i].value = memory_.back().floats(offset);
    offset += bytes_of(entries_[i]);
  }
  auto place_gradient = [&](EntryIndex i) {
    Entry& entry = entries_[i];
    if (i < first || !entry.held || !entry.wants_gradient || entry.gradient_passes) return;
    if (entry.gradient != nullptr) return;
    entry.gradient = memory_.back().floats(offset);
    offset += bytes_of(entry);
  };
  for (EntryIndex entry : gradient_order) place_gradient(entry);
  for (EntryIndex i = first; i < entries_.end_index(); ++i) place_gradient(i);
}

void ParameterStore::place_gradient(EntryIndex index, float* gradient) {
  Entry& entry = entries_[index];
  ensure(entry.gradient_passes && entry.gradient == nullptr, "a gradient has two places");
  entry.gradient = gradient;
}

void ParameterStore::fill(EntryIndex index, uint64_t seed) {
  const Entry& entry = entries_[index];
  if (entry.copy_of || !entry.held) return;
  std::vector<float> values(entry.canonical_size());
  RandomStream stream{.seed = seed, .iteration = 0, .owner = RandomStream::owner_of(entry.name)};
  cortado::fill(entry.spec.filler, entry.spec.shape, entry.slice, stream, values.data());
  if (const int64_t at = first_non_finite(values); at >= 0)
    throw UserError(fmt::format("parameter {}: its filler gives the value {}; give it smaller numbers",
                                entry.name, values[static_cast<size_t>(at)]));
  put(index, values.data());
}

EntryIndex ParameterStore::find(const std::string& name) const {
  auto found = originals_.find(name);
  return found == originals_.end() ? EntryIndex() : found->second;
}

EntryIndex ParameterStore::original(EntryIndex entry) const {
  return entries_[entry].copy_of ? entries_[entry].copy_of : entry;
}

void ParameterStore::to_canonical(EntryIndex index, const float* own, float* canonical) const {
  const Entry& entry = entries_[index];
  if (entry.format.to_canonical) {
    entry.format.to_canonical(own, canonical);
  } else {
    arrays::copy(canonical, own, entry.canonical_size());
  }
}

void ParameterStore::from_canonical(EntryIndex index, const float* canonical, float* own) const {
  const Entry& entry = entries_[index];
  if (entry.format.from_canonical) {
    entry.format.from_canonical(canonical, own);
  } else {
    std::copy_n(canonical, entry.canonical_size(), own);
  }
}

std::vector<float> ParameterStore::canonical(EntryIndex entry, std::vector<float> memory) const {
  std::vector<float> values = std::move(memory);
  values.resize(entries_[entry].canonical_size());
  if (entries_[entry].held) {
    const device::HostView own(*device_, entries_[entry].value, entries_[entry].elements);
    to_canonical(entry, own.values().data(), values.data());
  }
  return values;
}

void ParameterStore::set(EntryIndex entry, std::span<const float> canonical) {
  ensure(static_cast<int64_t>(canonical.size()) == entries_[entry].canonical_size(),
         "parameter of another size");
  if (entries_[entry].held) put(entry, canonical.data());
}

void ParameterStore::put(EntryIndex index, const float* canonical) {
  const Entry& entry = entries_[index];
  if (device_->host_accessible()) {
    device_->queue().finish();
    return from_canonical(index, canonical, entry.value);
  }
  std::vector<float> values(static_cast<size_t>(entry.elements));
  from_canonical(index, canonical, values.data());
  device::write(*device_, entry.value, values);
}

void ParameterStore::set_from_whole(EntryIndex entry, std::span<const float> whole) {
  if (entries_[entry].canonical_size() == std::ssize(whole)) return set(entry, whole);
  set(entry, slice_of(entry, whole));
}

std::vector<float> ParameterStore::slice_of(EntryIndex index, std::span<const float> whole) const {
  const Entry& entry = entries_[index];
  ensure(static_cast<int64_t>(whole.size()) == entry.spec.shape.size(), "parameter of another size");
  std::vector<float> values(entry.canonical_size());
  if (entry.held) copy_common(Box::whole(entry.spec.shape), whole.data(), entry.slice, values.data());
  return values;
}

void ParameterStore::refresh() {
  for (EntryIndex i : indices(entries_)) {
    const Entry& copy = entries_[i];
    if (!copy.copy_of || !copy.held) continue;
    std::vector<float> values(copy.canonical_size());
    copy_common(entries_[copy.copy_of].slice, canonical(copy.copy_of).data(), copy.slice, values.data());
    set(i, values);
  }
}

}  // namespace cortado
