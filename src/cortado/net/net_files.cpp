#include "cortado/net/net_files.h"

namespace cortado {
namespace {

// The values of an optional text field of a layer's options.
template <typename Options>
void add_source(std::set<std::string>& files, bool present, const Options& options) {
  if (present && options.has_source()) files.insert(options.source());
}

}  // namespace

std::set<std::string> files_read_by(const NetFile& file) {
  std::set<std::string> files;
  for (const caffe::LayerParameter& layer : file.net.layer()) {
    add_source(files, layer.has_data_param(), layer.data_param());
    if (layer.has_data_param()) files.insert(layer.data_param().source() + "/data.mdb");
    add_source(files, layer.has_image_data_param(), layer.image_data_param());
    add_source(files, layer.has_hdf5_data_param(), layer.hdf5_data_param());
    add_source(files, layer.has_window_data_param(), layer.window_data_param());
    add_source(files, layer.has_volume_data_param(), layer.volume_data_param());
    if (layer.transform_param().has_mean_file()) files.insert(layer.transform_param().mean_file());
  }
  return files;
}

std::set<std::string> files_written_by(const NetFile& file) {
  std::set<std::string> files;
  for (const caffe::LayerParameter& layer : file.net.layer())
    if (layer.hdf5_output_param().has_file_name()) files.insert(layer.hdf5_output_param().file_name());
  return files;
}

void add_files(CommandFiles& files, const NetFile& net) {
  files.reads(net.path);
  for (const std::string& path : files_read_by(net)) files.reads(path);
  for (const std::string& path : files_written_by(net)) files.writes("hdf5_output_param.file_name", path);
}

}  // namespace cortado
