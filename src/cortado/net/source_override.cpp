#include "cortado/net/source_override.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

#include "cortado/base/error.h"
#include "cortado/net/filter.h"

namespace cortado {
namespace {

// Null for layers of other types.
std::string* source_of(caffe::LayerParameter& layer) {
  if (layer.type() == "Data") return layer.mutable_data_param()->mutable_source();
  if (layer.type() == "ImageData") return layer.mutable_image_data_param()->mutable_source();
  if (layer.type() == "WindowData") return layer.mutable_window_data_param()->mutable_source();
  if (layer.type() == "VolumeData") return layer.mutable_volume_data_param()->mutable_source();
  if (layer.type() == "HDF5Data") return layer.mutable_hdf5_data_param()->mutable_source();
  return nullptr;
}

void set_first_extent(google::protobuf::RepeatedPtrField<caffe::BlobShape>& shapes, int extent) {
  for (caffe::BlobShape& shape : shapes) {
    if (shape.dim_size() > 0) shape.set_dim(0, extent);
  }
}

}  // namespace

void override_source(NetFile& file, const caffe::NetState& state, const std::string& assignment,
                     const std::string& what) {
  const size_t equals = assignment.find('=');
  const std::string name = equals == std::string::npos ? "" : assignment.substr(0, equals);
  const std::string path = equals == std::string::npos ? assignment : assignment.substr(equals + 1);
  const std::string said = fmt::format("{} {}", what, assignment);
  if (path.empty()) throw UserError(fmt::format("{}: give a path, or LAYER=PATH", said));
  std::vector<std::string> layers;
  std::string* source = nullptr;
  for (int i = 0; i < file.net.layer_size(); ++i) {
    caffe::LayerParameter& layer = *file.net.mutable_layer(i);
    if (!stays(file, i, state) || source_of(layer) == nullptr) continue;
    layers.push_back(layer.name());
    if (name.empty() || name == layer.name()) source = source_of(layer);
  }
  if (layers.empty()) throw UserError(fmt::format("{}: net {} has no layer with a source", said, file.path));
  if (name.empty() && layers.size() > 1)
    throw UserError(fmt::format("{}: net {} has the sources {}; give LAYER=PATH for one of them", said,
                                file.path, fmt::join(layers, ", ")));
  if (source == nullptr)
    throw UserError(fmt::format("{}: net {} has no source '{}' (there are: {})", said, file.path, name,
                                fmt::join(layers, ", ")));
  *source = path;
}

void override_batch(caffe::NetParameter& net, int batch) {
  for (caffe::LayerParameter& layer : *net.mutable_layer()) {
    if (layer.has_data_param()) layer.mutable_data_param()->set_batch_size(static_cast<uint32_t>(batch));
    if (layer.has_image_data_param())
      layer.mutable_image_data_param()->set_batch_size(static_cast<uint32_t>(batch));
    if (layer.has_window_data_param())
      layer.mutable_window_data_param()->set_batch_size(static_cast<uint32_t>(batch));
    if (layer.has_volume_data_param())
      layer.mutable_volume_data_param()->set_batch_size(static_cast<uint32_t>(batch));
    if (layer.has_hdf5_data_param())
      layer.mutable_hdf5_data_param()->set_batch_size(static_cast<uint32_t>(batch));
    if (layer.has_memory_data_param())
      layer.mutable_memory_data_param()->set_batch_size(static_cast<uint32_t>(batch));
    if (layer.has_input_param()) set_first_extent(*layer.mutable_input_param()->mutable_shape(), batch);
    if (layer.has_dummy_data_param()) {
      auto& dummy = *layer.mutable_dummy_data_param();
      set_first_extent(*dummy.mutable_shape(), batch);
      for (uint32_t& num : *dummy.mutable_num()) num = static_cast<uint32_t>(batch);
    }
  }
}

void change_net(NetFile& file, const caffe::NetState& state, const NetChanges& changes,
                const std::string& what) {
  file.precision = changes.precision;
  if (changes.batch > 0) override_batch(file.net, changes.batch);
  for (const std::string& source : changes.sources) override_source(file, state, source, what);
}

}  // namespace cortado
