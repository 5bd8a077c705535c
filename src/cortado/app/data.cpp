#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <memory>

#include "cortado/app/commands.h"
#include "cortado/base/command_files.h"
#include "cortado/base/error.h"
#include "cortado/cli/file_option.h"
#include "cortado/cli/help_lines.h"
#include "cortado/cli/number_option.h"
#include "cortado/data/database_folder.h"
#include "cortado/data/import.h"
#include "cortado/data/mean.h"
#include "cortado/terminal/progress.h"

namespace cortado {
namespace {

constexpr int most_pixels = 65'535;  // of a side of an image, as in JPEG files
constexpr int64_t most_images = 1'000'000'000'000;

struct DataArguments {
  std::string first, second, output;  // positional
  ImportOptions import;
  ShapesOptions shapes;
  int64_t samples = 10000;
};
using DataAction = std::function<void(const DataArguments&)>;

void print_written(int64_t records, const std::string& where) {
  fmt::print("Wrote {} records to {}\n", records, where);
}

void add_force(CLI::App& verb, DataArguments& arguments) {
  verb.add_flag("--force", arguments.import.force, "replace a database that cortado data made");
}

// The options of Caffe's convert_imageset.
void add_image_options(CLI::App& verb, DataArguments& arguments) {
  ImportOptions& import = arguments.import;
  add_number(verb, "--resize-height", import.resize_height, 0, most_pixels,
             "height to resize to; 0: as it is");
  add_number(verb, "--resize-width", import.resize_width, 0, most_pixels, "width to resize to; 0: as it is");
  verb.add_flag("--shuffle", import.shuffle, "store in random order");
  add_number(verb, "--seed", import.seed, 0, UINT64_MAX, "seed of --shuffle");
  verb.add_flag("--gray", import.gray, "store grey images");
  verb.add_flag("--encoded", import.encoded, "store compressed images (a file that fits is stored as it is)");
  verb.add_option("--encode-type", import.encode_type, "jpg or png: compress so; implies --encoded");
  verb.add_flag("--check-size", import.check_size, "refuse images of another size than the first");
  verb.add_flag("--skip-corrupt", import.skip_corrupt, "name and leave out broken images");
  import.notice = [](const std::string& line) { fmt::print(stderr, "{}\n", line);
};
add_force(verb, arguments);
}  // namespace

void write_mean_file(const DataArguments& arguments) {
  CommandFiles files;
  files.reads({arguments.first, (std::filesystem::path(arguments.first) / DatabaseFolder::data).string()});
  files.writes("mean file", arguments.output);
  files.check();
  const MeanImage mean = compute_mean(arguments.first, arguments.import);
  write_mean(arguments.output, mean);
  fmt::print("Wrote the mean of {} ({}x{}x{}) to {}\n", arguments.first, mean.channels, mean.height,
             mean.width, arguments.output);
  const std::vector<double> values = channel_means(mean);
  for (size_t c = 0; c < values.size(); ++c) fmt::print("mean_value channel [{}]: {:.6g}\n", c, values[c]);
}

// The verbs of `cortado data` and what they do.
struct Verbs {
  CLI::App& data;
  DataArguments& arguments;
  std::map<CLI::App*, DataAction> actions{};

  CLI::App* add(const char* name, const char* description, DataAction action) {
    CLI::App* verb = data.add_subcommand(name, description);
    verb->allow_extras();
    verb->footer(help_footer());
    actions[verb] = std::move(action);
    return verb;
  }
};

void positional(CLI::App* verb, const char* name, std::string& value, const char* description) {
  verb->add_option(name, value, description)->required();
}

void add_image_verbs(Verbs& verbs) {
  DataArguments& arguments = verbs.arguments;
  CLI::App* images =
      verbs.add("images", "an image list (PATH LABEL a line) to an LMDB", [](const DataArguments& a) {
        ImportOptions options = a.import;
        options.inputs = {a.second};
        print_written(import_images(a.first, read_image_list(a.second), a.output, options), a.output);
      });
  positional(images, "root", arguments.first, "folder before each path, with its closing slash");
  positional(images, "list", arguments.second, "image list");
  positional(images, "out", arguments.output, "database to make");
  add_image_options(*images, arguments);

  CLI::App* folders = verbs.add("folders", "folders DIR/CLASS/*.jpg to an LMDB", [](const DataArguments& a) {
    print_written(import_folders(a.first, a.output, a.import), a.output);
  });
  positional(folders, "dir", arguments.first, "folder of class folders");
  positional(folders, "out", arguments.output, "database to make; labels.txt and list.txt go with it");
  add_image_options(*folders, arguments);
  refuse_empty_names(*folders, {"dir", "out"});
}

// Data sets in files of their own kinds.
void add_set_verbs(Verbs& verbs) {
  DataArguments& arguments = verbs.arguments;
  CLI::App* cifar = verbs.add(
      "cifar", "CIFAR-10 or CIFAR-100 binaries to two LMDBs",
      [](const DataArguments& a) { print_written(import_cifar(a.first, a.output, a.import), a.output); });
  positional(cifar, "dir", arguments.first, "folder of the .bin files");
  positional(cifar, "out", arguments.output, "folder for cifar10_train_lmdb and cifar10_test_lmdb");
  add_force(*cifar, arguments);

  CLI::App* mnist = verbs.add("mnist", "MNIST's IDX files to an LMDB", [](const DataArguments& a) {
    print_written(import_mnist(a.first, a.second, a.output, a.import), a.output);
  });
  positional(mnist, "images", arguments.first, "train-images-idx3-ubyte");
  positional(mnist, "labels", arguments.second, "train-labels-idx1-ubyte");
  positional(mnist, "out", arguments.output, "database to make");
  add_force(*mnist, arguments);
  CLI::App* leveldb = verbs.add("leveldb", "a LevelDB database to an LMDB", [](const DataArguments& a) {
    print_written(import_leveldb(a.first, a.output, a.import), a.output);
  });
  positional(leveldb, "db", arguments.first, "LevelDB folder");
  positional(leveldb, "out", arguments.output, "database to make");
  add_force(*leveldb, arguments);
  refuse_empty_names(*leveldb, {"db", "out"});
  refuse_empty_names(*cifar, {"dir", "out"});
  refuse_empty_names(*mnist, {"images", "labels", "out"});
}

void add_other_verbs(Verbs& verbs) {
  DataArguments& arguments = verbs.arguments;
  CLI::App* generate = verbs.add("generate", "an LMDB of drawn shapes", [](const DataArguments& a) {
    print_written(import_shapes(a.shapes, a.samples, a.output, a.import), a.output);
  });
  positional(generate, "out", arguments.output, "database to make");
  add_number(*generate, "--samples", arguments.samples, 1, most_images, "number of images");
  add_number(*generate, "--seed", arguments.shapes.seed, 0, UINT64_MAX, "another seed, other images");
  add_number(*generate, "--classes", arguments.shapes.classes, 2, static_cast<int>(shape_names().size()),
             "number of shapes");
  add_number(*generate, "--size", arguments.shapes.size, 16, 512, "pixels a side");
  add_force(*generate, arguments);

  CLI::App* mean = verbs.add("mean", "the mean image of an LMDB", write_mean_file);
  positional(mean, "db", arguments.first, "database");
  positional(mean, "out", arguments.output, "binaryproto file to write");
  refuse_empty_names(*mean, {"db", "out"});
}

}  // namespace cortado

Command add_data_command(CLI::App& app) {
  CLI::App* data = app.add_subcommand("data", "make an LMDB or a mean file");
  data->footer(help_footer(
      {"cortado data generate shapes_lmdb --samples 1000",
       "cortado data folders photographs/ photographs_lmdb --resize-height 256 --resize-width 256 --shuffle",
       "cortado data mnist train-images-idx3-ubyte train-labels-idx1-ubyte mnist_train_lmdb",
       "cortado data mean photographs_lmdb mean.binaryproto"}));
  auto arguments = std::make_shared<DataArguments>();
  arguments->import.progress = show_count;
  Verbs verbs{*data, *arguments};
  add_image_verbs(verbs);
  add_set_verbs(verbs);
  add_other_verbs(verbs);
  data->require_subcommand(1);
  auto run = [data, arguments, actions = std::move(verbs.actions)] {
    for (CLI::App* verb : data->get_subcommands()) actions.at(verb)(*arguments);
  };
  return {data, run};
}

}  // namespace cortado
