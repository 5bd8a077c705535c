#include "cortado/apply/feature_extractor.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

constexpr int64_t most_samples = int64_t{1} << 40;

int64_t samples_of(int64_t batches, int64_t batch_size) {
  if (batches > most_samples / batch_size)
    throw UserError(fmt::format("{} batches of {} are more samples than can be kept", batches, batch_size));
  return batches * batch_size;
}

void check_named_once(const std::vector<std::string>& blobs) {
  if (blobs.empty()) throw UserError("name the blobs to extract");
  for (size_t i = 0; i < blobs.size(); ++i)
    if (std::find(blobs.begin(), blobs.begin() + static_cast<int64_t>(i), blobs[i]) !=
        blobs.begin() + static_cast<int64_t>(i))
      throw UserError(fmt::format("blob '{}' is named twice; drop one", blobs[i]));
}

int64_t rows_not_finite(std::span<const float> values, int64_t row) {
  int64_t count = 0;
  for (; !values.empty(); values = values.subspan(static_cast<size_t>(row)))
    count += !std::ranges::all_of(values.first(static_cast<size_t>(row)),
                                  [](float v) { return std::isfinite(v); });
  return count;
}

}  // namespace

FeatureExtractor::FeatureExtractor(const TrainedNet& net, const std::vector<std::string>& blobs,
                                   int64_t batches, int reader_threads)
    : model_(net.file.path) {
  check_named_once(blobs);
  const PartOfNet part = part_of_net(net.file, net.state, blobs);
  own_ = std::make_unique<AppliedNet>(net, part, reader_threads, std::map<std::string, BatchSource>{});
  set_samples(batches > 0 ? samples_of(batches, own_->batch_size()) : own_->samples_of_data(), blobs);
}

FeatureExtractor::FeatureExtractor(const TrainedNet& net, const std::vector<std::string>& blobs,
                                   int64_t batches, std::unique_ptr<ImageSet> images,
                                   const ImageOptions& options)
    : model_(net.file.path) {
  check_named_once(blobs);
  ensure(!options.preprocess.oversample && !options.skip_corrupt, "features are of each image, whole");
  images_ = std::make_unique<NetOnImages>(net, blobs, std::move(images), options);
  const int64_t wanted = batches > 0 ? samples_of(batches, images_->batch_asked()) : images_->images();
  if (wanted > images_->images())
    throw UserError(
        fmt::format("{} batches of {} are {} images, but there are {}; ask for fewer, or leave the number of "
                    "batches out to take each once",
                    batches, images_->batch_asked(), wanted, images_->images()));
  set_samples(wanted, blobs);
}

void FeatureExtractor::set_samples(int64_t samples, const std::vector<std::string>& blobs) {
  samples_ = samples;
  not_finite_.assign(blobs.size(), 0);
  for (size_t b = 0; b < blobs.size(); ++b) {
    Shape shape = net().shape(b);
    if (shape.rank() == 0 || shape[0] != net().batch_size())
      throw UserError(fmt::format("{}: blob '{}' of {} has no row for each of {} samples; choose another",
                                  model_, blobs[b], shape.text(), net().batch_size()));
    shape.set(0, samples);
    arrays_.push_back({blobs[b], shape});
  }
}

void FeatureExtractor::run(FeatureStore& store, const std::function<void(int64_t, int64_t)>& progress) {
  for (int64_t done = 0; done < samples_;) {
    if (images_)
      images_->run();
    else
      own_->run();
    const int64_t count = std::min(net().batch_size(), samples_ - done);
    for (size_t a = 0; a < arrays_.size(); ++a) {
      const int64_t row = arrays_[a].shape.count(1);
      const std::vector<float> values = net().values(a);
      const std::span<const float> rows(values.data(), static_cast<size_t>(count * row));
      not_finite_[a] += rows_not_finite(rows, row);
      store.add(a, rows);
    }
    progress(done += count, samples_);
  }
}

}  // namespace cortado
