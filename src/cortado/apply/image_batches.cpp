#include "cortado/apply/image_batches.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {
namespace {

// A sample is an image, all of its crops; after the last one the stream has samples without an image.
class ImageStream : public SampleSource {
 public:
  ImageStream(std::unique_ptr<ImageSet> images, Preprocessor preprocessor,
              const ImageBatches::Options& options, std::shared_ptr<std::vector<ReadImage>> notes)
      : images_(std::move(images)),
        preprocessor_(std::move(preprocessor)),
        options_(options),
        notes_(std::move(notes)) {}

  std::vector<Shape> shapes() const override {
    return {{options_.images, preprocessor_.crops() * preprocessor_.output_shape().size()}};
  }
  int64_t records() const override { return images_->size(); }
  int64_t record_at(int64_t position) override { return position; }
  std::string record_name(int64_t record) override { return images_->place(record); }

  void load(int64_t record, int64_t, std::span<float* const> tops) override {
    if (record >= images_->size()) return;
    thread_local LoadedImage image;
    ReadImage& note = (*notes_)[record];
    note.name = images_->name(record);
    try {
      images_->load(record, image);
      note.label = image.label;
      preprocessor_.apply(image.pixels.view, tops[0]);
    } catch (const BrokenRecord& error) {
      if (!options_.skip_corrupt)
        throw UserError(fmt::format("{}; repair or remove it{}", error.what(), options_.remedy));
      note.fault = error.what();
    }
  }

  void finish_batch(int64_t first_sample, std::span<const int64_t> samples, std::span<const int64_t> floats,
                    std::span<float* const> tops) override {
    auto row = [&](size_t i) { return tops[0] + static_cast<int64_t>(i) * floats[0]; };
    auto read = [&](int64_t sample) {
      const int64_t image = first_sample + sample;
      return image < images_->size() && (*notes_)[image].fault.empty();
    };
    const auto good = std::ranges::find_if(samples, read) - samples.begin();
    for (size_t i = 0; i < samples.size(); ++i) {
      if (read(samples[i])) continue;
      if (good < std::ssize(samples))
        std::copy_n(row(good), floats[0], row(i));
      else
        std::fill_n(row(i), floats[0], 0.0f);
    }
  }

 private:
  std::unique_ptr<ImageSet> images_;
  Preprocessor preprocessor_;
  ImageBatches::Options options_;
  std::shared_ptr<std::vector<ReadImage>> notes_;
};

}  // namespace

ImageBatches::ImageBatches(std::unique_ptr<ImageSet> images, Preprocessor preprocessor,
                           const Options& options)
    : notes_(std::make_shared<std::vector<ReadImage>>(images->size())) {
  auto stream = std::make_unique<ImageStream>(std::move(images), std::move(preprocessor), options, notes_);
  reader_ = std::make_unique<PrefetchReader>(std::move(stream), options.images, false,
                                             ReaderOptions{.threads = options.threads});
}

}  // namespace cortado
