#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cortado/data/datum.h"

namespace cortado {

// One image of an ImageSet; `pixels` may borrow from `datum`.
struct LoadedImage {
  DatumPixels pixels;
  std::optional<int> label;  // where the set has labels
  caffe::Datum datum;
};

// Images to which a trained net is applied, in order. Any thread may read.
class ImageSet {
 public:
  virtual ~ImageSet() = default;
  virtual int64_t size() const = 0;
  // The file's path, or the record's key.
  virtual std::string name(int64_t index) = 0;
  // Where it is read from: the image's own file, or that of all of them.
  virtual std::string file(int64_t index) = 0;
  // Name for messages: file and key.
  virtual std::string place(int64_t index) = 0;
  // Loads an image with the channels that it has. Throws BrokenRecord with the reason alone.
  virtual void load(int64_t index, LoadedImage& image) = 0;
};

// The files and, of folders, the JPEG and PNG files in them by name. Throws UserError: no such file, a folder
// without images.
std::unique_ptr<ImageSet> open_images(const std::vector<std::string>& paths);

// What one path names: an LMDB of Datums, a folder of images, or an image list, a line "PATH LABEL" or
// "PATH", with `root` before each path. Throws UserError.
std::unique_ptr<ImageSet> open_image_source(const std::string& source, const std::string& root);

// Either of these, whichever is given; null: neither. Throws UserError where both are, or a root without
// source.
std::unique_ptr<ImageSet> open_named_images(const std::vector<std::string>& paths, const std::string& source,
                                            const std::string& root);

}  // namespace cortado
