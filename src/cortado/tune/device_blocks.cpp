#include "cortado/tune/device_blocks.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace cortado {
namespace {

using Division = std::vector<DeviceBlock>;

int smallest_prime(int number) {
  for (int p = 2; p * p <= number; ++p)
    if (number % p == 0) return p;
  return number;
}

// Devices that stay together longest within the block: those of some nodes, or of a link's group.
int unit_of(const DeviceGraph& machine, DeviceBlock block) {
  const Node& node = machine.node(machine.node_of(block.first));
  const int devices = static_cast<int>(node.devices.size());
  if (block.count > devices && block.count % devices == 0) return devices;
  int unit = 1;
  for (const NodeLink& link : node.links)
    if (link.group < block.count && block.count % link.group == 0) unit = std::max(unit, link.group);
  return unit;
}

Division halves_of(const DeviceGraph& machine, DeviceBlock block) {
  const int unit = unit_of(machine, block), parts = smallest_prime(block.count / unit);
  Division halves;
  const int count = block.count / parts;
  for (int i = 0; i < parts; ++i) halves.push_back({block.first + i * count, count});
  return halves;
}

std::vector<int> sizes_of(const Division& division) {
  std::vector<int> sizes;
  for (const DeviceBlock& block : division) sizes.push_back(block.count);
  return sizes;
}

// The block itself, and its divisions.
std::vector<Division> all_of(const DeviceGraph& machine, DeviceBlock block, int most) {
  std::vector<Division> all{{block}};
  if (block.count < 2 || most < 2) return all;
  const Division halves = halves_of(machine, block);
  if (std::ssize(halves) > most) return all;
  // `so_far`: of the halves before; `last`: of the one before alone.
  const std::function<void(size_t, const Division&, const Division&)> extend =
      [&](size_t half, const Division& so_far, const Division& last) {
        if (half == halves.size()) {
          all.push_back(so_far);
          return;
        }
        const int left = most - static_cast<int>(so_far.size() + halves.size() - half - 1);
        for (const Division& one : all_of(machine, halves[half], left)) {
          if (half > 0 && sizes_of(one) > sizes_of(last)) continue;
          Division longer = so_far;
          longer.insert(longer.end(), one.begin(), one.end());
          extend(half + 1, longer, one);
        }
      };
  extend(0, {}, {});
  return all;
}

}  // namespace

std::vector<Division> divisions(const DeviceGraph& machine, DeviceBlock whole, int most) {
  std::vector<Division> all = all_of(machine, whole, most);
  all.erase(all.begin());
  return all;
}

Division in_proportion(DeviceBlock whole, const std::vector<double>& shares) {
  const auto parts = std::ssize(shares);
  if (whole.count < parts) return {};
  // Each gets one device; each further one goes to the share that has least devices for its size.
  std::vector<int> sizes(shares.size(), 1);
  for (auto left = whole.count - parts; left > 0; --left) {
    size_t neediest = 0;
    for (size_t i = 1; i < shares.size(); ++i)
      if (shares[i] / sizes[i] > shares[neediest] / sizes[neediest]) neediest = i;
    ++sizes[neediest];
  }
  Division division;
  int first = whole.first;
  for (int size : sizes) {
    division.push_back({first, size});
    first += size;
  }
  return division;
}

}  // namespace cortado
