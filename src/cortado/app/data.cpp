#include <cstdio>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <unistd.h>

#include "cortado/app/commands.h"
#include "cortado/base/error.h"
#include "cortado/data/import.h"

namespace cortado {

namespace {

struct DataArguments {
  std::string first, second, output;  // positional
  ImportOptions import;
  ShapesOptions shapes;
  int64_t samples = 10000;
};
using DataAction = std::function<void(const DataArguments&)>;

// One line, rewritten in place, on a terminal only.
void show_progress(int64_t done, int64_t total) {
  if (!isatty(STDERR_FILENO)) return;
  fmt::print(stderr, "\r{} of {} ({}%){}", done, total, 100 * done / total, done == total ? "\n" : "");
  std::fflush(stderr);
}

void print_written(int64_t records, const std::string& where) {
  fmt::print("Wrote {} records to {}\n", records, where);
}

void add_force(CLI::App& verb, DataArguments& arguments) {
  verb.add_flag("--force", arguments.import.force, "replace an existing database");
}

// The options of Caffe's convert_imageset.
void add_image_options(CLI::App& verb, DataArguments& arguments) {
  ImportOptions& import = arguments.import;
  verb.add_option("--resize-height", import.resize_height, "height to resize to; 0: as it is");
  verb.add_option("--resize-width", import.resize_width, "width to resize to; 0: as it is");
  verb.add_flag("--shuffle", import.shuffle, "store in random order");
  verb.add_option("--seed", import.seed, "seed of --shuffle");
  verb.add_flag("--gray", import.gray, "store grey images");
  verb.add_flag("--encoded", import.encoded, "store compressed images (a file that fits is stored as it is)");
  verb.add_option("--encode-type", import.encode_type, "jpg or png: compress so; implies --encoded");
  verb.add_flag("--check-size", import.check_size, "refuse images of another size than the first");
  verb.add_flag("--skip-corrupt", import.skip_corrupt, "name and leave out broken images");
  add_force(verb, arguments);
}

void write_mean_file(const DataArguments& arguments) {
  const MeanImage mean = compute_mean(arguments.first, arguments.import);
  write_mean(arguments.output, mean);
  fmt::print("Wrote the mean of {} ({}x{}x{}) to {}\n", arguments.first, mean.channels, mean.height,
             mean.width, arguments.output);
  for (int c = 0; c < mean.channels; ++c) {
    double sum = 0;
    for (size_t i = c; i < mean.values.size(); i += mean.channels) sum += mean.values[i];
    fmt::print("mean_value channel [{}]: {:.6g}\n", c,
               sum * mean.channels / static_cast<double>(mean.values.size()));
  }
}

std::map<CLI::App*, DataAction> add_verbs(CLI::App& data, DataArguments& arguments) {
  std::map<CLI::App*, DataAction> actions;
  auto add = [&](const char* name, const char* description, DataAction action) {
    CLI::App* verb = data.add_subcommand(name, description);
    verb->allow_extras();
    actions[verb] = std::move(action);
    return verb;
  };
  auto positional = [](CLI::App* verb, const char* name, std::string& value, const char* description) {
    verb->add_option(name, value, description)->required();
  };
  CLI::App* images =
      add("images", "an image list (PATH LABEL a line) to an LMDB", [](const DataArguments& a) {
        print_written(import_images(a.first, read_image_list(a.second), a.output, a.import), a.output);
      });
  positional(images, "root", arguments.first, "folder before each path, with its closing slash");
  positional(images, "list", arguments.second, "image list");
  positional(images, "out", arguments.output, "database to make");
  add_image_options(*images, arguments);

  CLI::App* folders = add("folders", "folders DIR/CLASS/*.jpg to an LMDB", [](const DataArguments& a) {
    print_written(import_folders(a.first, a.output, a.import), a.output);
  });
  positional(folders, "dir", arguments.first, "folder of class folders");
  positional(folders, "out", arguments.output, "database to make; labels.txt and list.txt go with it");
  add_image_options(*folders, arguments);

  CLI::App* cifar = add("cifar", "CIFAR-10 or CIFAR-100 binaries to two LMDBs", [](const DataArguments& a) {
    print_written(import_cifar(a.first, a.output, a.import), a.output);
  });
  positional(cifar, "dir", arguments.first, "folder of the .bin files");
  positional(cifar, "out", arguments.output, "folder for cifar10_train_lmdb and cifar10_test_lmdb");
  add_force(*cifar, arguments);

  CLI::App* mnist = add("mnist", "MNIST's IDX files to an LMDB", [](const DataArguments& a) {
    print_written(import_mnist(a.first, a.second, a.output, a.import), a.output);
  });
  positional(mnist, "images", arguments.first, "train-images-idx3-ubyte");
  positional(mnist, "labels", arguments.second, "train-labels-idx1-ubyte");
  positional(mnist, "out", arguments.output, "database to make");
  add_force(*mnist, arguments);

  CLI::App* generate = add("generate", "an LMDB of drawn shapes", [](const DataArguments& a) {
    print_written(import_shapes(a.shapes, a.samples, a.output, a.import), a.output);
  });
  positional(generate, "out", arguments.output, "database to make");
  generate->add_option("--samples", arguments.samples, "number of images")->capture_default_str();
  generate->add_option("--seed", arguments.shapes.seed, "another seed, other images")->capture_default_str();
  generate->add_option("--classes", arguments.shapes.classes, "number of shapes")->capture_default_str();
  generate->add_option("--size", arguments.shapes.size, "pixels a side")->capture_default_str();
  add_force(*generate, arguments);

  CLI::App* mean = add("mean", "the mean image of an LMDB", write_mean_file);
  positional(mean, "db", arguments.first, "database");
  positional(mean, "out", arguments.output, "binaryproto file to write");
  return actions;
}

}  // namespace

Command add_data_command(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "make an LMDB or a mean file");
  auto arguments = std::make_shared<DataArguments>();
  arguments->import.progress = show_progress;
  auto actions = add_verbs(*data, *arguments);
  data->require_subcommand(1);
  auto run = [data, arguments, actions] {
    for (CLI::App* verb : data->get_subcommands()) actions.at(verb)(*arguments);
  };
  return {data, run};
}

}  // namespace cortado
