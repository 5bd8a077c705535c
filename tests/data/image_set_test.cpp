#include "cortado/data/image_set.h"

#include <filesystem>
#include <gtest/gtest.h>

#include "cortado/data/image_codecs.h"
#include "cortado/data/image_list.h"
#include "cortado/data/lmdb.h"

#include "tests/data/support.h"

namespace cortado {
namespace {

void write_image(const std::string& path, const Image& image) {
  const std::vector<uint8_t> file = encode_image(image, "png");
  write_bytes(path, {reinterpret_cast<const char*>(file.data()), file.size()});
}

std::vector<std::string> names_of(ImageSet& images) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < images.size(); ++i) names.push_back(images.name(i));
  return names;
}

TEST(ImageSet, TakesFilesAndFoldersInTheirOrder) {
  ScratchFolder folder;
  std::filesystem::create_directories(folder / "some/below");
  for (const char* name : {"some/b.PNG", "some/a.png", "some/below/c.png", "last.png"})
    write_image(folder / name, pattern(2, 3, 1));
  write_bytes(folder / "some/notes.txt", "no image");
  auto images = open_images({folder / "some", folder / "last.png"});
  EXPECT_EQ(names_of(*images),
            (std::vector<std::string>{folder / "some/a.png", folder / "some/b.PNG", folder / "last.png"}));
  LoadedImage image;
  images->load(2, image);
  EXPECT_EQ(image.pixels.image, pattern(2, 3, 1));
  EXPECT_FALSE(image.label);
}

TEST(ImageSet, ReadsListsWithAndWithoutLabels) {
  ScratchFolder folder;
  write_image(folder / "a.png", pattern(2, 3, 3));
  write_image(folder / "b 7", pattern(3, 2, 1));
  write_bytes(folder / "list.txt", "a.png 5\n\nb 7 8\na.png\n");
  auto images = open_image_source(folder / "list.txt", folder / "");
  EXPECT_EQ(names_of(*images),
            (std::vector<std::string>{folder / "a.png", folder / "b 7", folder / "a.png"}));
  LoadedImage image;
  images->load(0, image);
  EXPECT_EQ(image.label, 5);
  images->load(1, image);
  EXPECT_EQ(image.label, 8);
  EXPECT_EQ(image.pixels.image, pattern(3, 2, 1));
  images->load(2, image);
  EXPECT_FALSE(image.label);
}

TEST(ImageSet, ReadsDatabasesInTheOrderOfKeys) {
  ScratchFolder folder;
  {
    LmdbWriter writer(folder / "db", false);
    caffe::Datum unlabelled = raw_datum(pattern(2, 2, 1), 0);
    unlabelled.clear_label();
    writer.put("b", unlabelled.SerializeAsString());
    writer.put("a", raw_datum(pattern(2, 3, 3), 9).SerializeAsString());
    writer.put("c", "no datum");
    writer.finish();
  }
  auto images = open_image_source(folder / "db", "");
  EXPECT_EQ(names_of(*images), (std::vector<std::string>{"a", "b", "c"}));
  LoadedImage image;
  images->load(0, image);
  EXPECT_EQ(image.label, 9);
  EXPECT_EQ(image_of(image.pixels.view), pattern(2, 3, 3));
  images->load(1, image);
  EXPECT_FALSE(image.label);
  EXPECT_THROW(images->load(2, image), BrokenRecord);
  EXPECT_NE(images->place(2).find("db key 'c'"), std::string::npos);
}

TEST(ImageSet, RefusesWhatHoldsNoImages) {
  ScratchFolder folder;
  std::filesystem::create_directories(folder / "empty");
  write_bytes(folder / "list.txt", "\n");
  write_image(folder / "a.png", pattern(2, 2, 1));
  auto refusal = [](const std::vector<std::string>& paths) { return error_of([&] { open_images(paths); }); };
  EXPECT_NE(refusal({folder / "none.jpg"}).find("none.jpg does not exist"), std::string::npos);
  EXPECT_NE(refusal({folder / "empty"}).find("empty holds no"), std::string::npos);
  auto source = [&](const std::string& path) { return error_of([&] { open_image_source(path, ""); }); };
  EXPECT_NE(source(folder / "none").find("does not exist"), std::string::npos);
  EXPECT_NE(source(folder / "list.txt").find("is empty"), std::string::npos);
  EXPECT_NE(source(folder / "a.png").find("not a list"), std::string::npos);
  EXPECT_NE(source(std::string(5000, 'x')).find("does not exist"),
            std::string::npos);  // no path of the system's
}

}  // namespace
}  // namespace cortado
