#include "cortado/net/without_effect.h"

#include <fmt/format.h>

namespace cortado {
namespace {

// Fields of one layer's data parameters.
class DataFields {
 public:
  DataFields(const std::string& layer, std::string_view message) : layer_(layer), message_(message) {}

  void check(bool given, std::string_view field, std::string_view remedy) {
    if (given)
      lines.push_back(
          fmt::format("{}: {}.{} has no effect, as in Caffe; {}", layer_, message_, field, remedy));
  }

  template <typename Parameter>
  void check_transform(const Parameter& parameter) {
    constexpr std::string_view remedy = "set it in transform_param";
    check(parameter.has_scale(), "scale", remedy);
    check(parameter.has_mean_file(), "mean_file", remedy);
    check(parameter.has_crop_size(), "crop_size", remedy);
    check(parameter.has_mirror(), "mirror", remedy);
  }

  std::vector<std::string> lines;

 private:
  const std::string& layer_;
  std::string_view message_;
};

std::vector<std::string> fields_without_effect(const caffe::LayerParameter& layer, const std::string& where) {
  if (layer.type() == "Data") {
    DataFields fields(where, "data_param");
    fields.check_transform(layer.data_param());
    fields.check(layer.data_param().has_force_encoded_color(), "force_encoded_color",
                 "set force_color in transform_param");
    fields.check(layer.data_param().has_rand_skip(), "rand_skip", "remove it");
    return fields.lines;
  }
  if (layer.type() == "ImageData") {
    DataFields fields(where, "image_data_param");
    fields.check_transform(layer.image_data_param());
    return fields.lines;
  }
  if (layer.type() == "WindowData") {
    DataFields fields(where, "window_data_param");
    fields.check_transform(layer.window_data_param());
    return fields.lines;
  }
  return {};
}

}  // namespace

std::vector<std::string> fields_without_effect(const NetFile& file) {
  std::vector<std::string> lines;
  for (int i = 0; i < file.net.layer_size(); ++i) {
    const caffe::LayerParameter& layer = file.net.layer(i);
    const std::string where = fmt::format("{}: layer '{}'", file.where(i).text(), layer.name());
    for (std::string& line : fields_without_effect(layer, where)) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace cortado
