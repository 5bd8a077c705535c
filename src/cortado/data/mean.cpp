#include "cortado/data/mean.h"

#include <fmt/format.h>
#include <fstream>

#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/base/finite.h"
#include "cortado/data/image.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado {

MeanImage read_mean(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(fmt::format("cannot open mean file {}; check mean_file", path));
  caffe::BlobProto blob;
  if (!blob.ParseFromIstream(&file))
    throw UserError(fmt::format("{} is not a mean file (a BlobProto)", path));
  int64_t channels = blob.channels(), height = blob.height(), width = blob.width();
  if (blob.has_shape()) {  // the newer form: 1 x C x H x W or C x H x W
    const int rank = blob.shape().dim_size();
    if (rank < 3) throw UserError(fmt::format("mean file {} has {} axes; 3 or 4 are needed", path, rank));
    channels = blob.shape().dim(rank - 3);
    height = blob.shape().dim(rank - 2);
    width = blob.shape().dim(rank - 1);
  }
  const int64_t values = blob.data_size();
  if (!is_one_image(values, channels, height, width))
    throw UserError(fmt::format("mean file {} holds {} values, which is not one image of {}x{}x{}", path,
                                values, channels, height, width));
  MeanImage mean{static_cast<int>(channels), static_cast<int>(height), static_cast<int>(width), {}};
  mean.values.resize(values);
  const int plane = mean.height * mean.width;
  for (int c = 0; c < mean.channels; ++c)
    for (int i = 0; i < plane; ++i) mean.values[i * mean.channels + c] = blob.data(c * plane + i);
  if (const int64_t at = first_non_finite(mean.values); at >= 0)
    throw UserError(fmt::format("mean file {} holds the value {}; make it anew with `cortado data mean`",
                                path, mean.values[static_cast<size_t>(at)]));
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
  write_file_atomically(path, blob.SerializeAsString());
}

std::vector<double> channel_means(const MeanImage& mean) {
  const auto channels = static_cast<size_t>(mean.channels);
  std::vector<double> means(channels);
  for (size_t i = 0; i < mean.values.size(); ++i) means[i % channels] += mean.values[i];
  for (double& sum : means) sum = sum * mean.channels / static_cast<double>(mean.values.size());
  return means;
}

}  // namespace cortado
