#pragma once

#include <optional>

#include "cortado/data/prefetch.h"
#include "cortado/data/transform.h"

namespace cortado {

// What Data and ImageData have in common: tops {data}, {data, label} or, with MixUp, {data, label, label of
// the partner, lambda}; transforms; rand_skip. MixUp's lambda is one number a batch, a tensor without axes.
class ImageSource : public SampleSource {
 public:
  ImageSource(const SourceOptions& source, const ReaderOptions& options);
  std::vector<Shape> shapes() const override;
  std::vector<int64_t> partners(int64_t first_sample, Range samples) const override;
  void finish_batch(int64_t first_sample, std::span<const int64_t> samples, std::span<const int64_t> floats,
                    std::span<float* const> tops) override;

 protected:
  // Called once by the concrete class with the first sample's size.
  void set_sample_size(int channels, int height, int width);
  void transform(const PixelView& pixels, int label, int64_t position, std::span<float* const> tops) const;
  // Uniform in [0, rand_skip), the same for every epoch; 0 without rand_skip.
  int64_t skip() const;

  SourceOptions source_;
  RandomStream stream_;

 private:
  int tops_;
  bool mixes_;
  Phase phase_;
  std::optional<Transformer> transformer_;
};

// The record source of a Data layer: an LMDB or LevelDB of Datums. Throws UserError.
std::unique_ptr<SampleSource> open_database(const SourceOptions& source, const ReaderOptions& options);
// The record source of an ImageData layer: lines "PATH LABEL". Throws UserError.
std::unique_ptr<SampleSource> open_image_list(const SourceOptions& source, const ReaderOptions& options);

}  // namespace cortado
