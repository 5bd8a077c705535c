#include "cortado/net/missing_blob.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "cortado/base/nearest_name.h"

namespace cortado {
namespace {

bool makes(const LayerDeclaration& layer, const std::string& blob) {
  return std::ranges::find(layer.tops, blob) != layer.tops.end() &&
         std::ranges::find(layer.bottoms, blob) == layer.bottoms.end();
}

class MissingBlob {
 public:
  MissingBlob(const std::vector<LayerDeclaration>& layers, size_t reader, const std::string& blob)
      : layers_(layers), reader_(reader), blob_(blob) {}

  std::string text() const {
    std::string start = fmt::format("{} reads blob '{}'", layers_[reader_].text(), blob_);
    for (size_t maker = reader_; maker < layers_.size(); ++maker) {
      if (!makes(layers_[maker], blob_)) continue;
      const LayerDeclaration& layer = layers_[maker];
      if (reaches(maker)) {
        return fmt::format(
            "{} that only layer '{}' (line {}), which depends on '{}', makes: the net is cyclic", start,
            layer.name, layer.where.line, layers_[reader_].name);
      }
      return fmt::format("{} before layer '{}' (line {}) makes it; move that layer up", start, layer.name,
                         layer.where.line);
    }
    std::vector<std::string_view> known;
    for (size_t i = 0; i < reader_; ++i)
      known.insert(known.end(), layers_[i].tops.begin(), layers_[i].tops.end());
    return fmt::format("{} that no layer makes{}", start, did_you_mean(blob_, known));
  }

 private:
  // Whether layer `from` needs, directly or through others, what layer reader_ makes.
  bool reaches(size_t from) const {
    std::set<size_t> seen{from};
    std::vector<size_t> open{from};
    while (!open.empty()) {
      size_t layer = open.back();
      open.pop_back();
      if (layer == reader_) return true;
      for (size_t maker = 0; maker < layers_.size(); ++maker) {
        bool feeds = std::ranges::any_of(
            layers_[layer].bottoms, [&](const std::string& blob) { return makes(layers_[maker], blob); });
        if (feeds && seen.insert(maker).second) open.push_back(maker);
      }
    }
    return false;
  }

  const std::vector<LayerDeclaration>& layers_;
  size_t reader_;
  const std::string& blob_;
};

}  // namespace

std::string missing_blob(const std::vector<LayerDeclaration>& layers, size_t reader,
                         const std::string& blob) {
  return MissingBlob(layers, reader, blob).text();
}

}  // namespace cortado
