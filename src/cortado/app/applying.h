#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cortado/apply/net_on_images.h"
#include "cortado/comm/communicator.h"

namespace cortado {

// Options of the commands that apply a trained net.
struct ApplyArguments {
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
void add_apply_options(CLI::App& command, ApplyArguments& arguments);

// Joins a job of one rank and sets the compute threads. Throws UserError where a launcher started more ranks.
std::unique_ptr<Communicator> join_alone(const ApplyArguments& arguments);

TrainedNet trained_net(const ApplyArguments& arguments);
// Returns the images that the arguments name; null: none. Throws UserError where they are named in two ways.
std::unique_ptr<ImageSet> named_images(const ApplyArguments& arguments);
ImageOptions image_options(const ApplyArguments& arguments);
// Returns all files that the arguments name.
std::vector<std::string> input_files(const ApplyArguments& arguments);

}  // namespace cortado
