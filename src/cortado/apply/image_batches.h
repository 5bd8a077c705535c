#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cortado/data/image_set.h"
#include "cortado/data/prefetch.h"
#include "cortado/data/preprocess.h"

namespace cortado {

// What became of an image when it was read.
struct ReadImage {
  std::string name;
  std::optional<int> label;
  std::string fault;  // why it cannot be read; empty: it was
};

// Batches of the images of a set, each once and in order, decoded in the background: the images' crops one
// after another. Rows of the last batch without an image repeat the batch's first.
class ImageBatches {
 public:
  struct Options {
    int images = 1;  // of a batch
    int threads = 1;
    bool skip_corrupt = false;  // note broken images in place of stopping
    std::string remedy;         // what else the message of a broken image offers
  };
  ImageBatches(std::unique_ptr<ImageSet> images, Preprocessor preprocessor, const Options& options);

  int64_t images() const { return static_cast<int64_t>(notes_->size()); }
  // The next batch, valid until the next call. Throws UserError naming a broken image.
  std::vector<const float*> next() { return reader_->next().tensors; }
  // Note of an image of a batch that next() has given.
  const ReadImage& note(int64_t image) const { return (*notes_)[static_cast<size_t>(image)]; }

 private:
  std::shared_ptr<std::vector<ReadImage>> notes_;
  std::unique_ptr<PrefetchReader> reader_;
};

}  // namespace cortado
