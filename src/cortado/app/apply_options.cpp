#include "cortado/app/apply_options.h"

#include <climits>
#include <fmt/format.h>

#include "cortado/app/job_options.h"
#include "cortado/app/messages.h"
#include "cortado/app/model_options.h"
#include "cortado/base/error.h"
#include "cortado/base/text.h"
#include "cortado/cli/number_option.h"
#include "cortado/kernels/bf16_products.h"
#include "cortado/net/read_net.h"

namespace cortado {
void add_apply_options(CLI::App& command, ApplyOptions& a) {
  command.add_option("--model", a.model, "Model file (prototxt); its test phase is computed");
  command.add_option("--weights", a.weights, "Weights: .caffemodel, .h5 or .safetensors; several as a,b");
  add_number(command, "--level", a.level, INT_MIN, INT_MAX, "Level of the net state");
  command.add_option("--stage", a.stages, "Stages of the net state: a,b");
  command.add_option("images", a.images, "JPEG and PNG files, and folders of them");
  command.add_option(
      "--source", a.source,
      "In place of these: an LMDB of Datums, a folder, or an image list, a line PATH or PATH LABEL");
  command.add_option("--root", a.root, "Before each path of an image list, with its closing slash");
  command.add_option("--mean", a.mean, "Mean file (binaryproto): the mean of each channel is subtracted");
  command.add_option(
      "--mean-value", a.mean_values,
      "Subtracted from each channel, in the order blue, green, red: 104,117,123; or one for all");
  add_number(command, "--scale", a.scale, -1e16, 1e16, "Multiplies what is left; not 0")
      ->check(other_than_zero());
  command.add_option("--resize", a.resize,
                     "Height,width to resize images to before the centre is taken; default: the net's input");
  add_number(command, "--batch", a.batch, 1, most_samples_of_batch,
             "Images computed together; default: as the model says");
  add_precision_option(command, a.precision);
  add_number(command, "--threads", a.threads, 1, most_threads,
             "Compute threads; default: the cores that may be used");
  add_number(command, "--reader-threads", a.reader_threads, 1, most_threads, "Decoding threads");
  command.add_flag("--verbose", a.verbose, "Tell which kernel each layer got and why faster ones refused");
}

std::unique_ptr<Communicator> join_alone(const ApplyOptions& a) {
  JobOptions options;
  options.threads = a.threads;
  std::unique_ptr<Communicator> job = join_job(options);
  if (job->size() > 1)
    throw UserError(fmt::format(
        "a net is applied by one rank, but the launcher started {}; start cortado without it", job->size()));
  return job;
}

TrainedNet trained_net(const ApplyOptions& a) {
  if (a.weights.empty())
    throw UserError("give the trained weights with --weights: .caffemodel, .h5 or .safetensors");
  NetFile file = read_net(a.model);
  print_warnings(file.warnings);
  file.precision = a.precision;
  print_warnings(precision_warnings(a.precision));
  caffe::NetState state = net_state(file, Phase::test, a.level, split_list(a.stages));
  return {std::move(file), std::move(state), split_list(a.weights), print_notice};
}

ImageOptions image_options(const ApplyOptions& a) {
  ImageOptions options;
  options.preprocess.mean_file = a.mean;
  options.preprocess.mean_values =
      numbers_of<double>(a.mean_values, "--mean-value", "one, or one for each channel: 104,117,123");
  options.preprocess.scale = a.scale;
  const auto sides = numbers_of<int>(a.resize, "--resize", "height and width in pixels: 256,256");
  if (!a.resize.empty() && (sides.size() != 2 || sides[0] < 1 || sides[1] < 1))
    throw UserError(fmt::format("--resize {}: give height and width in pixels: 256,256", a.resize));
  if (sides.size() == 2) {
    options.preprocess.resize_height = sides[0];
    options.preprocess.resize_width = sides[1];
  }
  options.batch = a.batch;
  options.reader_threads = a.reader_threads;
  return options;
}

std::vector<std::string> input_files(const ApplyOptions& a) {
  std::vector<std::string> files = split_list(a.weights);
  for (const std::string& file : {a.model, a.mean, a.source})
    if (!file.empty()) files.push_back(file);
  return files;
}

}  // namespace cortado
