#include "cortado/apply/classifier.h"

#include <fstream>
#include <gtest/gtest.h>

#include "tests/apply/whole_net.h"

namespace cortado {
namespace {

class Classification : public testing::Test {
 protected:
  Classification() {
    write_images(folder_ / "db", 7);
    whole_.write_weights(folder_ / "weights.h5");
    net_ = {branched_net(), net_state(Phase::test), {folder_ / "weights.h5"}};
    options_.blob = "prob";
    options_.top = 3;
    options_.images.preprocess.mean_values = {100};
    options_.images.preprocess.scale = 1.0 / 64;
  }

  std::vector<ClassifiedImage> classified() {
    std::vector<ClassifiedImage> images;
    Classifier classifier(net_, open_image_source(folder_ / "db", ""), options_);
    classifier.run([&](const ClassifiedImage& image) { images.push_back(image); });
    return images;
  }

  ScratchFolder folder_;
  WholeNet whole_;
  TrainedNet net_;
  ClassifierOptions options_;
};

TEST_F(Classification, OrdersTheScoresOfTheWholeNet) {
  const std::vector<float> expected = whole_.values("prob", 7);
  for (int batch : {1, 3, 5}) {
    options_.images.batch = batch;
    const std::vector<ClassifiedImage> images = classified();
    ASSERT_EQ(images.size(), 7u);
    for (size_t i = 0; i < images.size(); ++i) {
      EXPECT_EQ(images[i].image.name, "image" + std::to_string(i));
      EXPECT_EQ(images[i].image.label, static_cast<int>(i % 3));
      ASSERT_EQ(images[i].predictions.size(), 3u);
      for (size_t rank = 0; rank < 3; ++rank) {
        const ClassScore& p = images[i].predictions[rank];
        EXPECT_NEAR(p.score, expected[i * 3 + p.of_class], 1e-5);
        EXPECT_GE(images[i].predictions[rank > 0 ? rank - 1 : 0].score, p.score);
      }
    }
  }
}

// Ten crops of an image as it is are five times itself and five times mirrored.
TEST_F(Classification, AveragesTheCrops) {
  PreprocessOptions& preprocess = options_.images.preprocess;
  preprocess.resize_height = 4;
  preprocess.resize_width = 5;
  const std::vector<ClassifiedImage> alone = classified();
  preprocess.oversample = true;
  const std::vector<ClassifiedImage> averaged = classified();
  {
    LmdbWriter writer(folder_ / "mirrored", false);
    for (int i = 0; i < 7; ++i) {
      Image image = drawn_image(i);
      for (int y = 0; y < image.height; ++y)
        for (int x = 0; x < image.width / 2; ++x)
          std::swap_ranges(image.row(y) + x * 3, image.row(y) + x * 3 + 3,
                           image.row(y) + (image.width - 1 - x) * 3);
      writer.put("image" + std::to_string(i), raw_datum(image, 0).SerializeAsString());
    }
    writer.finish();
  }
  preprocess.oversample = false;
  std::vector<ClassifiedImage> mirrored;
  Classifier(net_, open_image_source(folder_ / "mirrored", ""), options_)
      .run([&](const ClassifiedImage& image) { mirrored.push_back(image); });
  auto score = [](const ClassifiedImage& image, int64_t of_class) {
    return std::ranges::find(image.predictions, of_class, &ClassScore::of_class)->score;
  };
  for (size_t i = 0; i < 7; ++i)
    for (int64_t c = 0; c < 3; ++c)
      EXPECT_NEAR(score(averaged[i], c), (score(alone[i], c) + score(mirrored[i], c)) / 2, 1e-5);
}

TEST_F(Classification, LeavesBrokenImagesOutOnlyWhenAsked) {
  {
    LmdbWriter writer(folder_ / "broken", false);
    for (int i : {0, 1, 2, 3}) {
      const std::string good = raw_datum(drawn_image(i), i).SerializeAsString();
      writer.put("image" + std::to_string(i), i == 0 || i == 2 ? "not a datum" : good);
    }
    writer.finish();
  }
  std::filesystem::remove_all(folder_ / "db");
  std::filesystem::rename(folder_ / "broken", folder_ / "db");
  const std::string message = error_of([&] { classified(); });
  EXPECT_NE(message.find("db key 'image0': not a Datum; repair"), std::string::npos) << message;
  options_.images.skip_corrupt = true;
  const std::vector<float> expected = whole_.values("prob", 4);
  const std::vector<ClassifiedImage> images = classified();
  ASSERT_EQ(images.size(), 4u);
  for (size_t i : {0u, 2u}) {
    EXPECT_EQ(images[i].image.fault, "not a Datum");
    EXPECT_TRUE(images[i].predictions.empty());
  }
  for (size_t i : {1u, 3u})
    EXPECT_NEAR(images[i].predictions[0].score, expected[i * 3 + images[i].predictions[0].of_class], 1e-5);
}

TEST_F(Classification, NeedsAsManyLabelsAsScores) {
  options_.labels = folder_ / "labels.txt";
  std::ofstream(options_.labels) << "one\r\ntwo, or so\nthree\n\n";
  Classifier classifier(net_, open_image_source(folder_ / "db", ""), options_);
  EXPECT_EQ(classifier.labels(), (std::vector<std::string>{"one", "two, or so", "three"}));
  std::ofstream(options_.labels) << "one\ntwo\n";
  EXPECT_NE(error_of([&] { classified(); }).find("names 2 classes, but the net puts out 3"),
            std::string::npos);
}

TEST_F(Classification, AsksWhichOfSeveralOutputs) {
  options_.blob.clear();
  EXPECT_NE(error_of([&] { classified(); }).find("2 outputs, 'side', 'prob'"), std::string::npos);
  options_.blob = "side";
  EXPECT_NE(error_of([&] { classified(); }).find("not a row of scores"), std::string::npos);
}

TEST_F(Classification, RefusesScoresThatAreNotFinite) {
  put_not_finite(folder_ / "weights.h5", "score");
  const std::string message = error_of([&] { classified(); });
  EXPECT_NE(message.find("image0: its score of class"), std::string::npos) << message;
  EXPECT_NE(message.find("'score'"), std::string::npos) << message;
}

}  // namespace
}  // namespace cortado
