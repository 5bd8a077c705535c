#include <fmt/format.h>
#include <memory>

#include "cortado/app/apply_options.h"
#include "cortado/app/commands.h"
#include "cortado/app/job_options.h"
#include "cortado/app/messages.h"
#include "cortado/apply/feature_extractor.h"
#include "cortado/apply/output_path.h"
#include "cortado/base/error.h"
#include "cortado/base/text.h"
#include "cortado/cli/file_option.h"
#include "cortado/cli/help_lines.h"
#include "cortado/cli/number_option.h"
#include "cortado/net/net_files.h"
#include "cortado/net/source_override.h"

namespace cortado {
namespace {

struct ExtractArguments {
  ApplyOptions apply;
  std::string blobs, out, format;
  int64_t batches = 0;
  bool force = false;
};

// The words of Caffe's extract_features: weights, net, blobs, names, batches, the kind of database once or
// for each blob, and CPU.
void take_words_of_caffe(ExtractArguments& a) {
  std::vector<std::string>& words = a.apply.images;
  constexpr size_t least = 6;
  if (!a.apply.weights.empty() || !a.blobs.empty() || !a.out.empty() || !a.apply.source.empty() ||
      words.size() < least)
    throw UserError(
        "give the net with --model, its weights with --weights, --blobs and --out; or the words of Caffe's "
        "extract_features: WEIGHTS NET.prototxt BLOB,BLOB OUT,OUT BATCHES lmdb");
  for (size_t i = least - 1; i < words.size(); ++i) {
    const bool last = i + 1 == words.size();
    if (words[i] != "lmdb" && !(last && words[i] == "CPU"))
      throw UserError(fmt::format(
          "'{}' stands where Caffe's extract_features has lmdb, or CPU at the end; LevelDB is not "
          "written, and this version computes on the CPU",
          words[i]));
  }
  a.apply.weights = words[0];
  a.apply.model = words[1];
  a.blobs = words[2];
  a.out = words[3];
  a.batches = number_of<int64_t>(words[4]).value_or(0);
  if (a.batches < 1) throw UserError(fmt::format("{} is not a whole number of batches", words[4]));
  a.format = "lmdb";
  words.clear();
}

FeatureExtractor make_extractor(const ExtractArguments& a, const TrainedNet& net,
                                std::unique_ptr<ImageSet> images) {
  const std::vector<std::string> blobs = split_list(a.blobs);
  if (images) return {net, blobs, a.batches, std::move(images), image_options(a.apply)};
  return {net, blobs, a.batches, a.apply.reader_threads};
}

void run_extract(ExtractArguments a) {
  const std::unique_ptr<Communicator> job = join_alone(a.apply);
  if (a.apply.model.empty()) take_words_of_caffe(a);
  if (a.blobs.empty()) throw UserError("name the blobs to extract with --blobs, as in --blobs fc6,fc7");
  if (a.out.empty())
    throw UserError("say where the features go with --out: a name for each blob, or a folder");
  const FeatureFormat format = feature_format_named(a.format);
  const std::vector<std::string> paths = feature_paths(format, split_list(a.out), split_list(a.blobs));
  TrainedNet net = trained_net(a.apply);
  std::unique_ptr<ImageSet> images = open_named_images(a.apply.images, a.apply.source, a.apply.root);
  if (!images && a.apply.batch > 0) override_batch(net.file.net, a.apply.batch);
  std::vector<std::string> inputs = input_files(a.apply);
  for (const std::string& file : files_read_by(net.file)) inputs.push_back(file);
  check_outputs(paths, inputs, images.get());

  FeatureExtractor extractor = make_extractor(a, net, std::move(images));
  if (a.apply.verbose) print_kernels(extractor.executor(), "the net");
  std::unique_ptr<FeatureStore> store = make_feature_store(format, paths, extractor.arrays(), a.force);
  constexpr int64_t samples_a_line = 1000;
  int64_t told = 0;
  extractor.run(*store, [&](int64_t done, int64_t total) {
    if (done / samples_a_line == told / samples_a_line || done == total) return;
    told = done;
    fmt::print("Extracted {} of {} samples\n", done, total);
  });
  store->finish();
  for (size_t b = 0; b < extractor.arrays().size(); ++b) {
    const FeatureArray& array = extractor.arrays()[b];
    fmt::print("Wrote '{}' of {} to {}\n", array.blob, array.shape.text(),
               paths.size() > 1 ? paths[b] : paths[0]);
    if (const int64_t bad = extractor.not_finite()[b])
      fmt::print(stderr, "warning: {} samples of '{}' have values that are not finite\n", bad, array.blob);
  }
  if (const int64_t skipped = extractor.skipped_records())
    fmt::print("Broken records skipped: {}\n", skipped);
}

}  // namespace

Command add_extract_command(CLI::App& app) {
  auto a = std::make_shared<ExtractArguments>();
  a->format = "lmdb";
  CLI::App* command = app.add_subcommand(
      "extract",
      "Write what blobs of a trained net hold for each sample, of images or of the net's own data layers");
  add_apply_options(*command, a->apply);
  command->add_option("--blobs", a->blobs, "Blobs of the net: fc6,fc7");
  command->add_option("--out", a->out,
                      "A name for each blob, a,b; or for several blobs one folder or, of hdf5, one file");
  command
      ->add_option("--format", a->format, "lmdb (Datums of floats, as Caffe's), hdf5 or npy; default: lmdb")
      ->check(CLI::IsMember({"lmdb", "hdf5", "npy"}));
  add_number(*command, "--batches", a->batches, 1, most_samples_of_batch,
             "So many batches; default: each sample once");
  command->add_flag("--force", a->force, "Replace outputs that exist");
  command->footer(help_footer(
      {"cortado extract --model deploy.prototxt --weights net.caffemodel --mean-value 104,117,123 "
       "--blobs fc7 --format npy --out fc7.npy photographs/",
       "cortado extract net.caffemodel train_val.prototxt fc6,fc7 fc6_lmdb,fc7_lmdb 10 lmdb"}));
  refuse_empty_names(*command, {"--model", "--weights", "--source", "--mean", "--blobs", "--out"});
  return {command, [a] { run_extract(*a); }};
}

}  // namespace cortado
