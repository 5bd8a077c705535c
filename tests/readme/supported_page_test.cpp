// The lists of what is supported and what is not are those of the program and of caffe.proto.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <regex>

#include "cortado/base/file.h"
#include "cortado/layers/pointwise.h"
#include "cortado/net/from_caffe.h"

#include "tests/net/random_prototxt.h"

namespace cortado {
namespace {

std::string page() { return read_file(CORTADO_SOURCE_DIR "/docs/reference/supported.md"); }

// The text from `begin` to the first `end` after it.
std::string part(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  EXPECT_NE(from, std::string::npos) << begin;
  return from == std::string::npos ? "" : text.substr(from, text.find(end, from) - from);
}

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  const std::regex word("[A-Za-z][A-Za-z0-9]*");
  for (std::sregex_iterator at(text.begin(), text.end(), word), end; at != end; ++at) words.insert(at->str());
  return words;
}

TEST(SupportedPage, NamesEverySupportedLayer) {
  const std::set<std::string> words = words_of(part(page(), "# What is supported", "Not supported"));
  for (std::string_view type : supported_layer_types())
    EXPECT_TRUE(words.contains(std::string(type))) << type;
  for (const auto& [type, reason] : refused_layer_types())
    EXPECT_FALSE(words.contains(std::string(type))) << type;
}

TEST(SupportedPage, NamesEveryLayerThatIsRefused) {
  const std::string sentence = part(page(), "Not supported, and refused by name and line:", ";");
  const std::set<std::string> words = words_of(sentence.substr(sentence.find(':')));
  std::set<std::string> refused;
  for (const auto& [type, reason] : refused_layer_types()) refused.insert(std::string(type));
  EXPECT_EQ(words, refused);
}

TEST(SupportedPage, EveryLayerOfCaffeIsInOneOfTheLists) {
  for (const std::string& type : testing::caffe_layer_types()) {
    const bool supported = std::ranges::count(supported_layer_types(), type) > 0;
    EXPECT_NE(supported, refused_layer_types().contains(type)) << type;
  }
  // Every message of options in caffe.proto is some layer's.
  const auto& layer = *caffe::LayerParameter::descriptor();
  std::set<std::string> known{"transform", "loss", "recurrent", "norm"};
  for (std::string type : testing::caffe_layer_types()) {
    for (char& c : type) c = static_cast<char>(std::tolower(c));
    known.insert(type);
  }
  for (int i = 0; i < layer.field_count(); ++i) {
    std::string name = layer.field(i)->name();
    if (!name.ends_with("_param")) continue;
    name.resize(name.size() - 6);
    std::erase(name, '_');
    EXPECT_TRUE(known.contains(name)) << layer.field(i)->name();
  }
}

// The table of docs/how-to/gpu.md names the layers of which GPUs have kernels, and no others.
TEST(GpuPage, NamesEveryLayerOfAGpu) {
  std::set<std::string> on_gpus;
  const auto add = [&](const std::vector<std::string_view>& types) {
    on_gpus.insert(types.begin(), types.end());
  };
#define GPU(name, ...) add({__VA_ARGS__});
#include "cortado/kernels/layer_kernels.def"
  const std::set<std::string> words =
      words_of(part(read_file(CORTADO_SOURCE_DIR "/docs/how-to/gpu.md"), "| products |", "| solvers |"));
  for (std::string_view type : supported_layer_types())
    EXPECT_EQ(words.contains(std::string(type)), on_gpus.contains(std::string(type))) << type;
}

}  // namespace
}  // namespace cortado
