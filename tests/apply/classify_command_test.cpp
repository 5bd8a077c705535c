#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/apply/trained_shapes.h"

namespace cortado {
namespace {

class Classify : public TrainedShapes {
 protected:
  static nlohmann::json predictions(const std::string& arguments) {
    must_run("classify" + std::string(deployed) + arguments + " --json out.json");
    return nlohmann::json::parse(folder_->read("out.json"))["images"];
  }
};

// What the training net scores in `test`, the deploy net scores image by image.
TEST_F(Classify, HasTheAccuracyOfTest) {
  const std::string scored =
      must_run("test --threads 1 --model train_val.prototxt --weights weights.caffemodel --iterations 5");
  const double accuracy = number_after(scored, "] accuracy = ");
  EXPECT_GT(accuracy, 0.5);  // of four classes
  for (std::string images : {"--source test", "--source list.txt --root pngs/", "--source test --batch 7",
                             "--source test --batch 1 --reader-threads 3"}) {
    const std::string lines = must_run("classify" + std::string(deployed) + images);
    EXPECT_NEAR(number_after(lines, "Accuracy over the labels of 50 images: "), accuracy, 1e-6) << images;
  }
}

// Each image has the class with the largest score that the training net gives it.
TEST_F(Classify, TellsEachImageAsTheTrainingNetDoes) {
  must_run(
      "extract --threads 1 --model train_val.prototxt --weights weights.caffemodel --blobs ip --out ip_lmdb");
  LmdbReader reader(folder_->file("ip_lmdb"));
  const auto images = predictions("pngs");
  ASSERT_EQ(images.size(), 50u);
  for (size_t i = 0; i < images.size(); ++i) {
    caffe::Datum datum;
    parse_datum(reader.at(static_cast<int64_t>(i)).value, datum);
    const auto& scores = datum.float_data();
    const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    EXPECT_EQ(images[i]["predictions"][0]["class"], best) << i;
    // Softmax of the training net's scores.
    double sum = 0;
    for (float score : scores) sum += std::exp(static_cast<double>(score) - scores[static_cast<int>(best)]);
    EXPECT_NEAR(images[i]["predictions"][0]["score"].get<double>(), 1 / sum, 1e-5) << i;
  }
}

// Scores are those of f32 up to what bf16 rounds, which shows.
TEST_F(Classify, ComputesInBf16) {
  const auto exact = predictions("pngs"), rounded = predictions("pngs --precision bf16");
  ASSERT_EQ(rounded.size(), exact.size());
  double most = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    std::map<int, double> scores;
    for (const auto& one : exact[i]["predictions"]) scores[one["class"]] = one["score"];
    for (const auto& one : rounded[i]["predictions"])
      most = std::max(most, std::abs(one["score"].get<double>() - scores.at(one["class"])));
  }
  EXPECT_GT(most, 1e-5);
  EXPECT_LT(most, 0.05);
}

TEST_F(Classify, PrintsCaffesLines) {
  const std::string lines =
      must_run("classify" + std::string(deployed) + "pngs/03.png --labels test/labels.txt");
  std::istringstream text(lines);
  std::string line;
  std::getline(text, line);
  EXPECT_EQ(line, "---------- Prediction for pngs/03.png ----------");
  for (int i = 0; i < 4; ++i) {  // as many as there are classes
    std::getline(text, line);
    EXPECT_EQ(line.substr(6, 4), " - \"") << line;
    EXPECT_EQ(line.find_first_not_of("0123456789."), 6u) << line;
    EXPECT_EQ(line.back(), '"');
  }
  EXPECT_FALSE(std::getline(text, line)) << line;
  EXPECT_NE(lines.find("\"disc\""), std::string::npos) << lines;
}

TEST_F(Classify, TakesTheWordsOfCaffesExample) {
  must_run("data mean test mean.binaryproto");
  const std::string words = "deploy.prototxt weights.caffemodel mean.binaryproto test/labels.txt pngs/00.png";
  const std::string options =
      "--model deploy.prototxt --weights weights.caffemodel --mean mean.binaryproto --labels test/labels.txt "
      "pngs/00.png";
  EXPECT_EQ(must_run("classify " + words), must_run("classify " + options));
}

TEST_F(Classify, WritesTables) {
  must_run("classify" + std::string(deployed) +
           "--source list.txt --root pngs/ --top 2 --labels test/labels.txt --csv out.csv --json out.json");
  const auto json = nlohmann::json::parse(folder_->read("out.json"));
  EXPECT_EQ(json["blob"], "prob");
  std::istringstream csv(folder_->read("out.csv"));
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(line, "image,label,rank,class,name,score");
  for (const auto& image : json["images"]) {
    ASSERT_EQ(image["predictions"].size(), 2u);
    for (int rank = 1; rank <= 2; ++rank) {
      const auto& p = image["predictions"][static_cast<size_t>(rank - 1)];
      std::getline(csv, line);
      EXPECT_TRUE(line.starts_with(image["image"].get<std::string>() + "," + image["label"].dump() + "," +
                                   std::to_string(rank) + "," + p["class"].dump() + "," +
                                   p["name"].get<std::string>() + ","))
          << line;
    }
  }
  EXPECT_FALSE(std::getline(csv, line));
}

// A crop of all of the image is the image or its mirror.
TEST_F(Classify, Oversamples) {
  const auto plain = predictions("pngs/07.png --top 4");
  const auto over = predictions("pngs/07.png --top 4 --oversample --resize 16,16");
  const auto larger = predictions("pngs/07.png --top 4 --oversample --resize 20,24 --batch 10");
  double sum = 0;
  for (const auto& p : larger[0]["predictions"]) sum += p["score"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_NE(plain, over);
}

TEST_F(Classify, LeavesBrokenImagesOutWhenAsked) {
  folder_->write("broken.jpg", "\xff\xd8\xff nothing");
  EXPECT_NE(refusal("classify" + std::string(deployed) + "pngs/00.png broken.jpg").find("broken.jpg: "),
            std::string::npos);
  const std::string lines =
      must_run("classify" + std::string(deployed) + "pngs/00.png broken.jpg pngs/01.png --skip-corrupt");
  EXPECT_NE(lines.find("warning: skipped broken.jpg"), std::string::npos);
  EXPECT_NE(lines.find("Broken images skipped: 1"), std::string::npos);
  EXPECT_EQ(lines.find("Prediction for broken.jpg"), std::string::npos);
  EXPECT_NE(lines.find("Prediction for pngs/01.png"), std::string::npos);
}

// Photographs of all sizes, grey and in colour.
TEST_F(Classify, TakesPhotographs) {
  const char* given = std::getenv("CORTADO_DATA");
  const std::string archive =
      (given ? std::string(given) : std::string(CORTADO_SOURCE_DIR) + "/../shared/data") + "/photos-50.tar";
  if (!std::filesystem::exists(archive)) GTEST_SKIP() << "there is no " << archive;
  std::filesystem::create_directory(folder_->file("photos"));
  ASSERT_EQ(std::system(("tar xf '" + archive + "' -C '" + folder_->file("photos") + "'").c_str()), 0);
  // The archive's files lie in it or in one folder of it.
  const std::string lines = must_run(
      "classify" + std::string(deployed) +
      "$(find photos -name '*.[jJ]*' -printf '%h\\n' | sort | uniq -c | sort -n | awk 'END { print $2 }')");
  size_t images = 0;
  for (size_t at = lines.find("Prediction for"); at != std::string::npos;
       at = lines.find("Prediction for", at + 1))
    ++images;
  EXPECT_EQ(images, 50u);
}

}  // namespace
}  // namespace cortado
