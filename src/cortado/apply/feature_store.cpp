#include "cortado/apply/feature_store.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <set>

#include "cortado/apply/array_file.h"
#include "cortado/base/error.h"
#include "cortado/data/lmdb.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado {

namespace fs = std::filesystem;

namespace {

std::string extension_of(FeatureFormat format) {
  return format == FeatureFormat::lmdb ? "_lmdb" : format == FeatureFormat::hdf5 ? ".h5" : ".npy";
}

// The folder of the files where there was none; goes again, if it is empty, unless it is kept.
class MadeFolder {
 public:
  explicit MadeFolder(const fs::path& path) : path_(path) {
    std::error_code error;
    made_ = !path.empty() && fs::create_directory(path, error);
    if (!path.empty() && !fs::is_directory(path, error))
      throw UserError(
          fmt::format("there is no folder {}, and it cannot be made: make it first", path.string()));
  }
  ~MadeFolder() {
    std::error_code ignored;
    if (made_) fs::remove(path_, ignored);
  }
  MadeFolder(const MadeFolder&) = delete;
  void keep() { made_ = false; }

 private:
  fs::path path_;
  bool made_ = false;
};

class ArrayStore : public FeatureStore {
 public:
  ArrayStore(FeatureFormat format, const std::vector<std::string>& paths,
             const std::vector<FeatureArray>& arrays, bool replace)
      : folder_(fs::path(paths[0]).parent_path()) {
    const auto lay_out = format == FeatureFormat::npy ? npy_layout : hdf5_layout;
    for (size_t p = 0; p < paths.size(); ++p) {
      const std::vector<FeatureArray> held = paths.size() == arrays.size() ? std::vector{arrays[p]} : arrays;
      for (size_t a = 0; a < held.size(); ++a) places_.push_back({p, a});
      files_.push_back(std::make_unique<ArrayFile>(paths[p], replace, lay_out, held));
    }
  }
  void add(size_t array, std::span<const float> rows) override {
    files_[places_[array].file]->add(places_[array].array, rows);
  }
  void finish() override {
    for (const auto& file : files_) file->finish();
    folder_.keep();
  }

 private:
  struct Place {
    size_t file, array;
  };
  MadeFolder folder_;
  std::vector<std::unique_ptr<ArrayFile>> files_;
  std::vector<Place> places_;  // per array
};

class DatabaseStore : public FeatureStore {
 public:
  DatabaseStore(const std::vector<std::string>& paths, const std::vector<FeatureArray>& arrays, bool replace)
      : folder_(fs::path(paths[0]).parent_path()), arrays_(arrays), written_(arrays.size(), 0) {
    for (const FeatureArray& array : arrays)
      if (array.shape.rank() > 4)
        throw UserError(
            fmt::format("blob '{}' of {} has {} axes; a Datum has samples, channels, height and width: "
                        "choose --format hdf5 or npy",
                        array.blob, array.shape.text(), array.shape.rank()));
    for (const std::string& path : paths) writers_.push_back(std::make_unique<LmdbWriter>(path, replace));
  }

  void add(size_t array, std::span<const float> rows) override {
    const Shape& shape = arrays_[array].shape;
    auto extent = [&](int axis) { return axis < shape.rank() ? static_cast<int>(shape[axis]) : 1; };
    const int64_t size = shape.count(1);
    caffe::Datum datum;
    datum.set_channels(extent(1));
    datum.set_height(extent(2));
    datum.set_width(extent(3));
    for (; !rows.empty(); rows = rows.subspan(static_cast<size_t>(size))) {
      datum.mutable_float_data()->Assign(rows.begin(), rows.begin() + size);
      writers_[array]->put(fmt::format("{:010}", written_[array]++), datum.SerializeAsString());
    }
  }

  void finish() override {
    for (const auto& writer : writers_) writer->finish();
    folder_.keep();
  }

 private:
  MadeFolder folder_;
  std::vector<FeatureArray> arrays_;
  std::vector<int64_t> written_;  // samples, per array
  std::vector<std::unique_ptr<LmdbWriter>> writers_;
};

}  // namespace

std::vector<std::string> feature_paths(FeatureFormat format, const std::vector<std::string>& names,
                                       const std::vector<std::string>& blobs) {
  if (names.size() == blobs.size() || (names.size() == 1 && format == FeatureFormat::hdf5)) return names;
  if (names.size() != 1)
    throw UserError(fmt::format("{} output names for {} blobs; give one for each, or a single one",
                                names.size(), blobs.size()));
  std::vector<std::string> paths;
  for (std::string blob : blobs) {
    std::ranges::replace(blob, '/', '_');
    paths.push_back((fs::path(names[0]) / (blob + extension_of(format))).string());
  }
  return paths;
}

std::unique_ptr<FeatureStore> make_feature_store(FeatureFormat format, const std::vector<std::string>& paths,
                                                 const std::vector<FeatureArray>& arrays, bool replace) {
  std::set<fs::path> different;
  for (const std::string& path : paths)
    if (!different.insert(fs::path(path).lexically_normal()).second)
      throw UserError(fmt::format("{} would hold two blobs; give each a name of its own", path));
  if (format == FeatureFormat::lmdb) return std::make_unique<DatabaseStore>(paths, arrays, replace);
  return std::make_unique<ArrayStore>(format, paths, arrays, replace);
}

FeatureFormat feature_format_named(std::string_view name) {
  if (name == "hdf5") return FeatureFormat::hdf5;
  return name == "npy" ? FeatureFormat::npy : FeatureFormat::lmdb;
}

}  // namespace cortado
