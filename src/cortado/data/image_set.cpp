#include "cortado/data/image_set.h"

#include <filesystem>
#include <fmt/format.h>

#include "cortado/base/error.h"
#include "cortado/data/image_codecs.h"
#include "cortado/data/image_files.h"
#include "cortado/data/image_list.h"
#include "cortado/data/lmdb.h"

namespace cortado {

namespace fs = std::filesystem;

namespace {

class ImageFiles : public ImageSet {
 public:
  explicit ImageFiles(std::vector<NamedImage> images) : images_(std::move(images)) {}
  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  std::string name(int64_t index) override { return images_[index].path; }
  std::string file(int64_t index) override { return images_[index].path; }
  std::string place(int64_t index) override { return images_[index].path; }
  void load(int64_t index, LoadedImage& image) override {
    image.label = images_[index].label;
    image.pixels.image = decode_image(read_bytes(images_[index].path), ColorMode::native);
    image.pixels.view = image.pixels.image;
  }

 private:
  std::vector<NamedImage> images_;
};

class DatabaseImages : public ImageSet {
 public:
  explicit DatabaseImages(const std::string& path) : path_(path), database_(path) {}
  int64_t size() const override { return database_.size(); }
  std::string name(int64_t index) override { return std::string(database_.at(index).key); }
  std::string file(int64_t) override { return (fs::path(path_) / "data.mdb").string(); }
  std::string place(int64_t index) override { return fmt::format("{} key '{}'", path_, name(index)); }
  void load(int64_t index, LoadedImage& image) override {
    parse_datum(database_.at(index).value, image.datum);
    image.label = image.datum.has_label() ? std::optional<int>(image.datum.label()) : std::nullopt;
    datum_pixels(image.datum, ColorMode::native, image.pixels);
  }

 private:
  std::string path_;
  LmdbReader database_;
};

// Also false for what cannot be asked for.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}
bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}
bool is_database(const std::string& path) { return is_there(fs::path(path) / "data.mdb"); }

void add_folder(const std::string& folder, std::vector<NamedImage>& images) {
  const std::vector<fs::path> files = image_files_in(folder);
  if (files.empty())
    throw UserError(fmt::format(
        "{} holds no *.jpg, *.jpeg or *.png; name the folder that does (folders in it are not searched)",
        folder));
  for (const fs::path& file : files) images.push_back({file.string(), std::nullopt});
}

void check_exists(const std::string& path) {
  if (!is_there(path)) throw UserError(fmt::format("{} does not exist; check the path", path));
}

}  // namespace

std::unique_ptr<ImageSet> open_images(const std::vector<std::string>& paths) {
  std::vector<NamedImage> images;
  for (const std::string& path : paths) {
    check_exists(path);
    if (is_database(path))
      throw UserError(fmt::format("{} is an LMDB database; give it with --source", path));
    if (is_folder(path))
      add_folder(path, images);
    else
      images.push_back({path, std::nullopt});
  }
  return std::make_unique<ImageFiles>(std::move(images));
}

std::unique_ptr<ImageSet> open_image_source(const std::string& source, const std::string& root) {
  check_exists(source);
  if (is_database(source)) return std::make_unique<DatabaseImages>(source);
  std::vector<NamedImage> images;
  if (is_folder(source)) {
    add_folder(source, images);
  } else {
    if (!image_format_of(source).empty())
      throw UserError(
          fmt::format("{} is an image, not a list of them; give it as it is, without --source", source));
    images = read_named_images(source);
    for (NamedImage& image : images) image.path = root + image.path;
  }
  return std::make_unique<ImageFiles>(std::move(images));
}

std::unique_ptr<ImageSet> open_named_images(const std::vector<std::string>& paths, const std::string& source,
                                            const std::string& root) {
  if (!source.empty() && !paths.empty())
    throw UserError(fmt::format("images are named by --source {} and by themselves ({}); choose one", source,
                                paths.front()));
  if (!root.empty() && source.empty())
    throw UserError("--root stands before the paths of an image list; give that with --source");
  if (!source.empty()) return open_image_source(source, root);
  return paths.empty() ? nullptr : open_images(paths);
}

}  // namespace cortado
