#include "cortado/apply/net_on_images.h"

#include <algorithm>
#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

NetOnImages::NetOnImages(const TrainedNet& net, const std::vector<std::string>& blobs,
                         std::unique_ptr<ImageSet> images, const ImageOptions& options) {
  if (images->size() == 0) throw UserError("there are no images; name files, folders or a source");
  PartOfNet part = part_of_net(net.file, net.state, blobs);
  const ImageInput input = image_input_of(part.file);
  Preprocessor preprocessor(options.preprocess, {input.channels, input.height, input.width});
  crops_ = preprocessor.crops();
  batch_asked_ = options.batch > 0 ? options.batch : input.batch;
  images_a_batch_ = std::clamp<int64_t>(batch_asked_ / crops_, 1, images->size());
  set_input_batch(part.file, input.layer, static_cast<int>(images_a_batch_) * crops_);
  batches_ = std::make_unique<ImageBatches>(std::move(images), std::move(preprocessor),
                                            ImageBatches::Options{.images = static_cast<int>(images_a_batch_),
                                                                  .threads = options.reader_threads,
                                                                  .skip_corrupt = options.skip_corrupt,
                                                                  .remedy = options.remedy});
  net_ = std::make_unique<AppliedNet>(
      net, part, options.reader_threads,
      std::map<std::string, BatchSource>{{input.layer, [this] { return batches_->next(); }}});
}

int64_t NetOnImages::next_images() const { return std::min(images_a_batch_, images() - done_); }

int64_t NetOnImages::run() {
  net_->run();
  const int64_t first = done_;
  done_ += next_images();
  return first;
}

}  // namespace cortado
