#include "cortado/data/image_source.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/data/augment.h"
#include "cortado/data/shuffle.h"

namespace cortado {

ImageSource::ImageSource(const SourceOptions& source, const ReaderOptions& options)
    : source_(source),
      stream_{options.seed, 0, RandomStream::owner_of(options.layer_name)},
      tops_(options.tops),
      mixes_(source.transform.mixup_alpha > 0 && options.phase == Phase::train),
      phase_(options.phase) {
  const bool four = source.transform.mixup_alpha > 0;
  if (four && tops_ != 4)
    throw UserError(
        fmt::format("mixup_alpha needs four tops: data, label, the partner's label and lambda; there "
                    "are {}",
                    tops_));
  if (!four && (tops_ < 1 || tops_ > 2))
    throw UserError(fmt::format("images give one or two tops, data and label; there are {}", tops_));
  if (source.batch_size < 1)
    throw UserError(fmt::format("batch_size is {}; it must be at least 1", source.batch_size));
}

void ImageSource::set_sample_size(int channels, int height, int width) {
  transformer_.emplace(source_.transform, phase_, stream_, channels, height, width);
}

std::vector<Shape> ImageSource::shapes() const {
  const Shape sample = transformer_->output_shape();
  std::vector<Shape> shapes{{source_.batch_size, sample[0], sample[1], sample[2]}};
  if (tops_ > 1) shapes.push_back({source_.batch_size});
  if (tops_ > 2) shapes.insert(shapes.end(), {Shape{source_.batch_size}, Shape{}});
  return shapes;
}

void ImageSource::transform(const PixelView& pixels, int label, int64_t position,
                            std::span<float* const> tops) const {
  transformer_->apply(pixels, position, tops[0]);
  if (tops_ > 1) *tops[1] = static_cast<float>(label);
}

std::vector<int64_t> ImageSource::partners(int64_t first_sample, Range samples) const {
  std::vector<int64_t> outside;
  if (!mixes_ || samples.size() == source_.batch_size) return outside;
  const MixUp mixup = draw_mixup(source_.transform.mixup_alpha, stream_, first_sample, source_.batch_size);
  for (int64_t i = samples.begin; i < samples.end; ++i) {
    const int64_t partner = mixup.partner[i];
    if (partner < samples.begin || partner >= samples.end) outside.push_back(partner);
  }
  std::sort(outside.begin(), outside.end());
  return outside;
}

void ImageSource::finish_batch(int64_t first_sample, std::span<const int64_t> samples,
                               std::span<const int64_t> floats, std::span<float* const> tops) {
  if (tops_ != 4) return;
  const size_t rows = samples.size();
  const auto size = static_cast<size_t>(floats[0]);
  if (mixes_) {
    const MixUp mixup = draw_mixup(source_.transform.mixup_alpha, stream_, first_sample, source_.batch_size);
    apply_mixup(rows_of(mixup, samples), {tops[0], rows * size}, {tops[1], rows}, {tops[2], rows});
    *tops[3] = mixup.lambda;
  } else {
    std::copy_n(tops[1], rows, tops[2]);
    *tops[3] = 1;
  }
}

int64_t ImageSource::skip() const {
  if (source_.rand_skip <= 0) return 0;
  RandomStream own = stream_;
  own.owner ^= RandomStream::owner_of("rand_skip");
  return random_below(own, 0, 0, source_.rand_skip);
}

}  // namespace cortado
