#include "cortado/net/filter.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

bool meets(const caffe::NetState& state, const caffe::NetStateRule& rule) {
  auto present = [&](const std::string& stage) {
    return std::ranges::find(state.stage(), stage) != state.stage().end();
  };
  return (!rule.has_phase() || rule.phase() == state.phase()) &&
         (!rule.has_min_level() || state.level() >= rule.min_level()) &&
         (!rule.has_max_level() || state.level() <= rule.max_level()) &&
         std::ranges::all_of(rule.stage(), present) && std::ranges::none_of(rule.not_stage(), present);
}

bool stays(const NetFile& file, int index, const caffe::NetState& state) {
  auto met = [&](const caffe::NetStateRule& rule) { return meets(state, rule); };
  const caffe::LayerParameter& layer = file.net.layer(index);
  if (layer.include_size() > 0 && layer.exclude_size() > 0) {
    throw UserError(fmt::format("{}: layer '{}' has include and exclude rules; give only one kind",
                                file.where(index).text(), layer.name()));
  }
  return layer.include_size() > 0 ? std::ranges::any_of(layer.include(), met)
                                  : std::ranges::none_of(layer.exclude(), met);
}

NetFile filter_net(const NetFile& file, const caffe::NetState& state) {
  NetFile kept{file.path, file.net, {}};
  kept.net.clear_layer();
  *kept.net.mutable_state() = state;
  for (int i = 0; i < file.net.layer_size(); ++i) {
    if (!stays(file, i, state)) continue;
    *kept.net.add_layer() = file.net.layer(i);
    kept.layer_lines.push_back(file.layer_lines[i]);
  }
  return kept;
}

}  // namespace cortado
