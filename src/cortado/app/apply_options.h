#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cortado/apply/net_on_images.h"
#include "cortado/comm/communicator.h"

namespace cortado {

// Options of the commands that apply a trained net.
struct ApplyOptions {
  std::string model, weights, stages;
  int level = 0;
  int batch = 0;  // 0: as the model says
  int threads = 0;
  int reader_threads = 1;
  bool verbose = false;
  std::vector<std::string> images;  // files and folders, or the words of Caffe's tools
  std::string source, root;
  std::string mean, mean_values, resize;  // as typed
  double scale = 1;
  Precision precision = Precision::f32;
};
void add_apply_options(CLI::App& command, ApplyOptions& options);

// Joins a job of one rank and sets the compute threads. Throws UserError where a launcher started more ranks.
std::unique_ptr<Communicator> join_alone(const ApplyOptions& options);

TrainedNet trained_net(const ApplyOptions& options);
ImageOptions image_options(const ApplyOptions& options);
// Returns all files that the options name.
std::vector<std::string> input_files(const ApplyOptions& options);

}  // namespace cortado
