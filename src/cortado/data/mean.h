#pragma once

#include <string>
#include <vector>

namespace cortado {

// The mean image of a data set, as Caffe's BlobProto file (binaryproto) keeps it; here channels last.
struct MeanImage {
  int channels = 0, height = 0, width = 0;
  std::vector<float> values;  // height, width, channels
};

// The mean of each channel.
std::vector<double> channel_means(const MeanImage& mean);

// Throws UserError naming the file: missing, not a BlobProto, not one image.
MeanImage read_mean(const std::string& path);
// Throws UserError when the file cannot be written.
void write_mean(const std::string& path, const MeanImage& mean);

}  // namespace cortado
