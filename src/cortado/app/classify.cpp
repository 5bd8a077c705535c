#include <fmt/format.h>
#include <memory>

#include "cortado/app/apply_options.h"
#include "cortado/app/commands.h"
#include "cortado/app/job_options.h"
#include "cortado/app/messages.h"
#include "cortado/apply/classification_report.h"
#include "cortado/base/command_files.h"
#include "cortado/base/error.h"
#include "cortado/base/file.h"
#include "cortado/cli/file_option.h"
#include "cortado/cli/help_lines.h"
#include "cortado/cli/number_option.h"

namespace cortado {
namespace {

struct ClassifyArguments {
  ApplyOptions apply;
  std::string labels, blob, json, csv;
  int top = 5;
  bool oversample = false, skip_corrupt = false;
};

// The words of Caffe's classification example: model, weights, mean file, labels, image.
void take_words_of_caffe(ClassifyArguments& a) {
  ApplyOptions& apply = a.apply;
  constexpr size_t words = 5;
  const bool others =
      !apply.weights.empty() || !apply.mean.empty() || !a.labels.empty() || !apply.source.empty();
  if (others || apply.images.size() < words)
    throw UserError(
        "give the net with --model and its weights with --weights; or the words of Caffe's classification "
        "example: "
        "deploy.prototxt network.caffemodel mean.binaryproto labels.txt IMAGE");
  apply.model = apply.images[0];
  apply.weights = apply.images[1];
  apply.mean = apply.images[2];
  a.labels = apply.images[3];
  apply.images.erase(apply.images.begin(), apply.images.begin() + words - 1);
}

std::unique_ptr<ImageSet> images_to_classify(const ClassifyArguments& a) {
  std::unique_ptr<ImageSet> images = open_named_images(a.apply.images, a.apply.source, a.apply.root);
  if (!images) throw UserError("there are no images; name JPEG or PNG files, folders of them, or a --source");
  CommandFiles files;
  files.reads(input_files(a.apply));
  files.reads(a.labels);
  for (int64_t i = 0; i < images->size(); ++i) files.reads(images->file(i));
  files.writes("--json", a.json);
  files.writes("--csv", a.csv);
  files.check();
  return images;
}

ClassifierOptions options_of(const ClassifyArguments& a) {
  ClassifierOptions options{
      .images = image_options(a.apply), .blob = a.blob, .labels = a.labels, .top = a.top};
  options.images.preprocess.oversample = a.oversample;
  options.images.skip_corrupt = a.skip_corrupt;
  options.images.remedy = ", or leave such images out with --skip-corrupt";
  if (a.oversample && a.apply.resize.empty())
    throw UserError(
        "--oversample takes crops of larger images; say of what size with --resize, as in --resize 256,256");
  return options;
}

void run_classify(ClassifyArguments a) {
  const std::unique_ptr<Communicator> job = join_alone(a.apply);
  if (a.apply.model.empty()) take_words_of_caffe(a);
  std::unique_ptr<ImageSet> images = images_to_classify(a);
  Classifier classifier(trained_net(a.apply), std::move(images), options_of(a));
  if (a.apply.verbose) print_kernels(classifier.executor(), "the net");

  const bool keeps = !a.json.empty() || !a.csv.empty();
  std::vector<ClassifiedImage> kept;
  AccuracyCount accuracy;
  int64_t skipped = 0;
  classifier.run([&](const ClassifiedImage& image) {
    accuracy.add(image);
    if (keeps) kept.push_back(image);
    if (image.image.fault.empty()) {
      fmt::print("{}", prediction_lines(image, classifier.labels()));
    } else {
      fmt::print(stderr, "warning: skipped {}: {}\n", image.image.name, image.image.fault);
      ++skipped;
    }
  });
  fmt::print("{}", accuracy.text(a.top));
  if (skipped > 0) fmt::print("Broken images skipped: {}\n", skipped);
  if (!a.json.empty())
    write_file_atomically(a.json, classification_json(classifier.blob(), kept, classifier.labels()));
  if (!a.csv.empty()) write_file_atomically(a.csv, classification_csv(kept, classifier.labels()));
}

}  // namespace

Command add_classify_command(CLI::App& app) {
  auto a = std::make_shared<ClassifyArguments>();
  CLI::App* command = app.add_subcommand("classify", "Tell what trained weights see in images");
  add_apply_options(*command, a->apply);
  command->add_option("--labels", a->labels,
                      "Names of the classes, a line each, as `cortado data folders` writes");
  add_number(*command, "--top", a->top, 1, most_samples_of_batch, "Predictions of each image, best first");
  command->add_option("--blob", a->blob, "The blob with the scores; default: the net's only output");
  command->add_flag("--oversample", a->oversample,
                    "Mean of ten crops of each image: corners, centre, and these mirrored; needs --resize");
  command->add_flag("--skip-corrupt", a->skip_corrupt,
                    "Name and leave out broken images instead of stopping");
  command->add_option("--json", a->json, "Write the predictions as JSON");
  command->add_option("--csv", a->csv, "Write the predictions as a table, a line each");
  command->footer(help_footer(
      {"cortado classify --model deploy.prototxt --weights net.caffemodel --mean-value 104,117,123 "
       "--labels labels.txt cat.jpg photographs/",
       "cortado classify deploy.prototxt net.caffemodel mean.binaryproto labels.txt cat.jpg"}));
  refuse_empty_names(*command, {"--model", "--weights", "--source", "--mean", "--labels", "--json", "--csv"});
  return {command, [a] { run_classify(*a); }};
}

}  // namespace cortado
