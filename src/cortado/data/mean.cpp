#include "cortado/data/mean.h"

#include <fmt/format.h>
#include <fstream>

#include "cortado/base/error.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado {

MeanImage read_mean(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(fmt::format("cannot open mean file {}; check mean_file", path));
  caffe::BlobProto blob;
  if (!blob.ParseFromIstream(&file))
    throw UserError(fmt::format("{} is not a mean file (a BlobProto)", path));
  MeanImage mean{blob.channels(), blob.height(), blob.width(), {}};
  if (blob.has_shape()) {  // the newer form: 1 x C x H x W or C x H x W
    const int rank = blob.shape().dim_size();
    if (rank < 3) throw UserError(fmt::format("mean file {} has {} axes; 3 or 4 are needed", path, rank));
    mean.channels = static_cast<int>(blob.shape().dim(rank - 3));
    mean.height = static_cast<int>(blob.shape().dim(rank - 2));
    mean.width = static_cast<int>(blob.shape().dim(rank - 1));
  }
  if (mean.channels < 1 || mean.height < 1 || mean.width < 1 ||
      int64_t{mean.channels} * mean.height * mean.width != blob.data_size())
    throw UserError(fmt::format("mean file {} holds {} values, which is not one image of {}x{}x{}", path,
                                blob.data_size(), mean.channels, mean.height, mean.width));
  mean.values.resize(blob.data_size());
  const int plane = mean.height * mean.width;
  for (int c = 0; c < mean.channels; ++c)
    for (int i = 0; i < plane; ++i) mean.values[i * mean.channels + c] = blob.data(c * plane + i);
  return mean;
}

void write_mean(const std::string& path, const MeanImage& mean) {
  caffe::BlobProto blob;
  blob.set_num(1);
  blob.set_channels(mean.channels);
  blob.set_height(mean.height);
  blob.set_width(mean.width);
  const int plane = mean.height * mean.width;
  for (int c = 0; c < mean.channels; ++c)
    for (int i = 0; i < plane; ++i) blob.add_data(mean.values[i * mean.channels + c]);
  std::ofstream file(path, std::ios::binary);
  if (!blob.SerializeToOstream(&file) || !file.flush())
    throw UserError(fmt::format("cannot write mean file {}; check the folder and the space left", path));
}

}  // namespace cortado
