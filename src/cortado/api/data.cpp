#include "cortado/api/data.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado::api {
namespace {

int64_t size_of(const Shape& shape) {
  int64_t size = 1;
  for (int64_t extent : shape) size *= extent;
  return size;
}

// Copies rows of the samples in memory. After the last sample the first one follows.
FillBatch copies_of(const std::string& layer, const std::vector<std::span<const float>>& tops,
                    const std::vector<Shape>& sample_shapes) {
  if (tops.size() != sample_shapes.size() || tops.empty())
    throw UserError(fmt::format("data of layer '{}': {} tops and {} shapes of samples; give one shape a top",
                                layer, tops.size(), sample_shapes.size()));
  int64_t samples = -1;
  for (size_t top = 0; top < tops.size(); ++top) {
    const int64_t row = size_of(sample_shapes[top]), values = std::ssize(tops[top]);
    const bool whole = row > 0 && values > 0 && values % row == 0;
    if (!whole || (samples >= 0 && values / row != samples))
      throw UserError(
          fmt::format("data of layer '{}': top {} has {} values; give whole samples of {} values, as many as "
                      "the first top",
                      layer, top, values, row));
    samples = values / row;
  }
  return [tops, samples](BatchRequest& batch) {
    for (size_t top = 0; top < tops.size(); ++top) {
      const int64_t row = std::ssize(tops[top]) / samples;
      auto to = batch.tops[top].values.begin();
      for (int64_t sample = batch.begin; sample < batch.end; ++sample) {
        const int64_t from = (batch.number * batch.batch + sample) % samples;
        to = std::copy_n(tops[top].begin() + from * row, row, to);
      }
    }
  };
}

}  // namespace

Data& Data::fill(const std::string& layer, Phase phase, FillBatch fill, std::vector<Shape> sample_shapes) {
  if (!fill)
    throw UserError(fmt::format("data of layer '{}': there is no function that fills a batch", layer));
  sources_[{layer, phase}] = {std::move(fill), std::move(sample_shapes)};
  return *this;
}

Data& Data::fill(const std::string& layer, FillBatch fill, std::vector<Shape> sample_shapes) {
  this->fill(layer, Phase::train, fill, sample_shapes);
  return this->fill(layer, Phase::test, std::move(fill), std::move(sample_shapes));
}

Data& Data::spans(const std::string& layer, Phase phase, std::vector<std::span<const float>> tops,
                  std::vector<Shape> sample_shapes) {
  FillBatch copies = copies_of(layer, tops, sample_shapes);
  return fill(layer, phase, std::move(copies), std::move(sample_shapes));
}

Data& Data::spans(const std::string& layer, std::vector<std::span<const float>> tops,
                  std::vector<Shape> sample_shapes) {
  FillBatch copies = copies_of(layer, tops, sample_shapes);
  return fill(layer, std::move(copies), std::move(sample_shapes));
}

const Data::Source* Data::find(const std::string& layer, Phase phase) const {
  const auto found = sources_.find({layer, phase});
  return found == sources_.end() ? nullptr : &found->second;
}

std::vector<std::string> Data::layers() const {
  std::vector<std::string> names;
  for (const auto& [key, source] : sources_)
    if (names.empty() || names.back() != key.first) names.push_back(key.first);
  return names;
}

}  // namespace cortado::api
