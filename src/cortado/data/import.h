#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cortado/base/notices.h"
#include "cortado/data/image_list.h"
#include "cortado/data/mean.h"
#include "cortado/data/shapes.h"

namespace cortado {

// How new databases are written: LMDBs of Datums with keys "%08d_NAME", as Caffe's convert_imageset makes
// them.
struct ImportOptions {
  bool force = false;               // replace an existing database (database_folder.h)
  std::vector<std::string> inputs;  // files that are read, beside those that an import names; never replaced
  // The options of convert_imageset; images only.
  int resize_height = 0, resize_width = 0;  // 0: as in the file
  bool shuffle = false;
  uint64_t seed = 1;
  bool gray = false;
  bool encoded = false;
  std::string encode_type;    // jpg or png; empty with `encoded`: as the file
  bool check_size = false;    // all images must have one size and number of channels
  bool skip_corrupt = false;  // name and leave out broken images instead of stopping
  Notices notice{};           // of each image that is left out; any thread
  std::function<void(int64_t done, int64_t total)> progress = [](int64_t, int64_t) {};
};

// All return the number of records written, and throw UserError, leaving all as it was.

// The listed files below `root` (joined as in Caffe: root + path).
int64_t import_images(const std::string& root, std::vector<ListedImage> images, const std::string& database,
                      const ImportOptions& options);

// Images in one folder a class, CLASS/*.jpg; labels number the class folders in alphabetical order. Writes
// labels.txt (a class a line) and list.txt (an image list for ImageData) into the database folder.
int64_t import_folders(const std::string& folder, const std::string& database, const ImportOptions& options);

// The binary CIFAR-10 or CIFAR-100 files in `folder`; makes cifar10_train_lmdb and cifar10_test_lmdb (or
// cifar100_...) in `output`. CIFAR-100's labels are the fine ones.
int64_t import_cifar(const std::string& folder, const std::string& output, const ImportOptions& options);

// Images and labels in MNIST's IDX files, unpacked.
int64_t import_mnist(const std::string& images, const std::string& labels, const std::string& database,
                     const ImportOptions& options);

// The records of a LevelDB folder, with their keys and values as they are.
int64_t import_leveldb(const std::string& leveldb, const std::string& database, const ImportOptions& options);

// Drawn shapes; writes labels.txt (a shape a line) into the database folder.
int64_t import_shapes(const ShapesOptions& shapes, int64_t samples, const std::string& database,
                      const ImportOptions& options);

// The mean image of a database whose images are all alike (Caffe's compute_image_mean).
MeanImage compute_mean(const std::string& database, const ImportOptions& options);

}  // namespace cortado
