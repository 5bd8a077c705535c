#include <fmt/format.h>
#include <limits>

#include "cortado/base/error.h"
#include "cortado/base/text.h"
#include "cortado/layers/source.h"
#include "cortado/net/caffe/conversions.h"
#include "cortado/net/caffe/options.h"

namespace cortado::from_caffe {
namespace {

TransformOptions transform(const caffe::TransformationParameter& p) {
  if (p.has_mean_file() && p.mean_value_size() > 0) {
    throw UserError("mean_file and mean_value are both given; remove one");
  }
  TransformOptions options;
  options.scale = p.scale();
  options.mirror = p.mirror();
  options.crop_size = to_int("crop_size", p.crop_size());
  options.mean_file = p.mean_file();
  options.mean_values.assign(p.mean_value().begin(), p.mean_value().end());
  options.force_color = p.force_color();
  options.force_gray = p.force_gray();
  options.random_resized_crop = p.random_resized_crop();
  options.min_area = p.min_area();
  options.max_area = p.max_area();
  options.min_aspect = p.min_aspect();
  options.max_aspect = p.max_aspect();
  options.brightness = p.brightness();
  options.contrast = p.contrast();
  options.saturation = p.saturation();
  options.mixup_alpha = p.mixup_alpha();
  return options;
}

LayerPtr make_source(SourceOptions options) { return std::make_shared<Source>(std::move(options)); }

// A shape, filler or extent given once stands for all tops.
template <typename Values>
const auto& of_top(const Values& values, int top) {
  return values[values.size() == 1 ? 0 : top];
}

void check_one_or_each(std::string_view what, int count, int tops) {
  if (count == 1 || count == tops) return;
  throw UserError(fmt::format("{} {} for {} tops; give one, or one for each", count, what, tops));
}

Shape dummy_shape(const caffe::DummyDataParameter& p, int top) {
  if (p.shape_size() > 0) return shape(of_top(p.shape(), top));
  return {of_top(p.num(), top), of_top(p.channels(), top), of_top(p.height(), top), of_top(p.width(), top)};
}

LayerPtr data(const caffe::LayerParameter& layer) {
  const caffe::DataParameter& p = layer.data_param();
  SourceOptions options;
  options.kind = SourceOptions::Kind::data;
  options.source = p.source();
  options.batch_size = to_positive("batch_size", p.batch_size());
  options.leveldb = p.backend() == caffe::DataParameter::LEVELDB;
  options.shuffle = p.shuffle();
  options.skip_corrupt = p.skip_corrupt();
  options.transform = transform(layer.transform_param());
  return make_source(std::move(options));
}

LayerPtr image_data(const caffe::LayerParameter& layer) {
  const caffe::ImageDataParameter& p = layer.image_data_param();
  if ((p.new_height() == 0) != (p.new_width() == 0)) {
    throw UserError("new_height and new_width must be given together");
  }
  SourceOptions options;
  options.kind = SourceOptions::Kind::image_data;
  options.source = p.source();
  options.root_folder = p.root_folder();
  options.batch_size = to_positive("batch_size", p.batch_size());
  options.rand_skip = to_int("rand_skip", p.rand_skip());
  options.shuffle = p.shuffle();
  options.new_height = to_int("new_height", p.new_height());
  options.new_width = to_int("new_width", p.new_width());
  options.is_color = p.is_color();
  options.skip_corrupt = p.skip_corrupt();
  options.transform = transform(layer.transform_param());
  return make_source(std::move(options));
}

LayerPtr hdf5_data(const caffe::LayerParameter& layer) {
  if (layer.has_transform_param()) throw UserError("HDF5Data takes no transform_param; remove it");
  const caffe::HDF5DataParameter& p = layer.hdf5_data_param();
  SourceOptions options;
  options.kind = SourceOptions::Kind::hdf5_data;
  options.source = p.source();
  options.batch_size = to_positive("batch_size", p.batch_size());
  options.shuffle = p.shuffle();
  return make_source(std::move(options));
}

void check_window_transform(const TransformOptions& transform) {
  if (transform.crop_size == 0)
    throw UserError("transform_param.crop_size must be given: the size that windows are cut out in");
  if (transform.random_resized_crop || transform.brightness > 0 || transform.contrast > 0 ||
      transform.saturation > 0 || transform.mixup_alpha > 0 || transform.force_gray)
    throw UserError(
        "WindowData takes scale, mirror, crop_size, mean_file and mean_value of transform_param; remove the "
        "others");
}

WindowOptions windows(const caffe::WindowDataParameter& p) {
  if (p.crop_mode() != "warp" && p.crop_mode() != "square")
    throw UserError(fmt::format("crop_mode is '{}'; use \"warp\" or \"square\"", p.crop_mode()));
  WindowOptions options;
  options.foreground_threshold = p.fg_threshold();
  options.background_threshold = p.bg_threshold();
  options.foreground_fraction = p.fg_fraction();
  options.context_pad = to_int("context_pad", p.context_pad());
  options.square = p.crop_mode() == "square";
  options.cache_images = p.cache_images();
  return options;
}

LayerPtr window_data(const caffe::LayerParameter& layer) {
  const caffe::WindowDataParameter& p = layer.window_data_param();
  SourceOptions options;
  options.kind = SourceOptions::Kind::window_data;
  options.source = p.source();
  options.root_folder = p.root_folder();
  options.batch_size = to_positive("batch_size", p.batch_size());
  options.transform = transform(layer.transform_param());
  options.windows = windows(p);
  check_window_transform(options.transform);
  return make_source(std::move(options));
}

void check_volume_transform(const caffe::TransformationParameter& p) {
  caffe::TransformationParameter others = p;
  others.clear_scale();
  others.clear_mean_value();
  if (others.ByteSizeLong() > 0)
    throw UserError(
        "VolumeData takes scale and mean_value of transform_param, and crop and mirror of volume_data_param; "
        "remove the others");
}

std::vector<int64_t> crop_of(const caffe::VolumeDataParameter& p) {
  if (p.crop_size() != 0 && p.crop_size() != 1 && p.crop_size() != 3)
    throw UserError(fmt::format("crop has {} numbers; give one, or depth, height and width", p.crop_size()));
  std::vector<int64_t> crop;
  for (uint32_t extent : p.crop()) crop.push_back(to_positive("crop", extent));
  if (crop.size() == 1) crop.resize(3, crop[0]);
  return crop;
}

VolumeOptions::Element element_of(caffe::VolumeDataParameter::Type type) {
  using Element = VolumeOptions::Element;
  if (type == caffe::VolumeDataParameter::UINT8) return Element::uint8;
  return type == caffe::VolumeDataParameter::INT16 ? Element::int16 : Element::float32;
}

VolumeOptions volumes(const caffe::VolumeDataParameter& p) {
  VolumeOptions options;
  options.crop = crop_of(p);
  options.mirror = p.mirror();
  if (const size_t other = p.mirror().find_first_not_of("dhw"); other != std::string::npos)
    throw UserError(fmt::format("mirror is '{}': '{}' is no axis; give those of d, h and w that are mirrored",
                                printable(p.mirror()), printable(p.mirror().substr(other, 1))));
  if (p.raw_shape_size() != 0 && p.raw_shape_size() != 3 && p.raw_shape_size() != 4)
    throw UserError(
        fmt::format("raw_shape has {} numbers; give depth, height and width, or channels before them",
                    p.raw_shape_size()));
  if (p.raw_shape_size() == 3) options.raw_extents.push_back(1);
  for (uint32_t extent : p.raw_shape()) options.raw_extents.push_back(to_positive("raw_shape", extent));
  options.raw_element = element_of(p.raw_type());
  options.raw_label_element = element_of(p.raw_label_type());
  if (p.raw_offset() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    throw UserError(fmt::format("raw_offset {} is larger than any file", p.raw_offset()));
  options.raw_offset = static_cast<int64_t>(p.raw_offset());
  return options;
}

LayerPtr volume_data(const caffe::LayerParameter& layer) {
  const caffe::VolumeDataParameter& p = layer.volume_data_param();
  SourceOptions options;
  options.kind = SourceOptions::Kind::volume_data;
  options.source = p.source();
  options.root_folder = p.root_folder();
  options.batch_size = to_positive("batch_size", p.batch_size());
  options.shuffle = p.shuffle();
  options.transform = transform(layer.transform_param());
  options.volumes = volumes(p);
  check_volume_transform(layer.transform_param());
  return make_source(std::move(options));
}

LayerPtr memory_data(const caffe::LayerParameter& layer) {
  const caffe::MemoryDataParameter& p = layer.memory_data_param();
  SourceOptions options;
  options.kind = SourceOptions::Kind::memory_data;
  options.batch_size = to_positive("batch_size", p.batch_size());
  options.shapes = {{to_positive("channels", p.channels()), to_positive("height", p.height()),
                     to_positive("width", p.width())}};
  options.transform = transform(layer.transform_param());
  return make_source(std::move(options));
}

LayerPtr dummy_data(const caffe::LayerParameter& layer) {
  const caffe::DummyDataParameter& p = layer.dummy_data_param();
  SourceOptions options;
  options.kind = SourceOptions::Kind::dummy_data;
  int tops = layer.top_size();
  if (p.shape_size() > 0 && p.num_size() + p.channels_size() + p.height_size() + p.width_size() > 0) {
    throw UserError("shape and (older) num, channels, height, width are both given; give only shape");
  }
  if (p.shape_size() > 0) {
    check_one_or_each("shape", p.shape_size(), tops);
  } else {
    check_one_or_each("num", p.num_size(), tops);
    check_one_or_each("channels", p.channels_size(), tops);
    check_one_or_each("height", p.height_size(), tops);
    check_one_or_each("width", p.width_size(), tops);
  }
  if (p.data_filler_size() > 0) check_one_or_each("data_filler", p.data_filler_size(), tops);
  for (int top = 0; top < tops; ++top) {
    options.shapes.push_back(dummy_shape(p, top));
    options.fillers.push_back(p.data_filler_size() > 0 ? filler(of_top(p.data_filler(), top)) : Filler{});
  }
  return make_source(std::move(options));
}

LayerPtr input(const caffe::LayerParameter& layer) {
  const caffe::InputParameter& p = layer.input_param();
  SourceOptions options;
  options.kind = SourceOptions::Kind::input;
  if (p.shape_size() == 0) return make_source(std::move(options));  // its shapes come from elsewhere
  check_one_or_each("shape", p.shape_size(), layer.top_size());
  for (int top = 0; top < layer.top_size(); ++top) options.shapes.push_back(shape(of_top(p.shape(), top)));
  return make_source(std::move(options));
}

}  // namespace

std::span<const LayerType> source_types() {
  static constexpr LayerType types[] = {
      {"Data", data},
      {"ImageData", image_data},
      {"HDF5Data", hdf5_data},
      {"MemoryData", memory_data},
      {"DummyData", dummy_data},
      {"Input", input},
      {"WindowData", window_data},
      {"VolumeData", volume_data},
  };
  return types;
}

}  // namespace cortado::from_caffe
