#include "cortado/apply/applied_net.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cortado/base/error.h"
#include "cortado/train/trainer.h"

namespace cortado {
namespace {

std::map<std::string, BatchSource> sources_of(DataNetwork& data,
                                              const std::map<std::string, BatchSource>& given) {
  std::map<std::string, BatchSource> sources = data.sources();
  for (const auto& [layer, source] : given) sources.at(layer) = source;
  return sources;
}

}  // namespace

AppliedNet::AppliedNet(const TrainedNet& net, const PartOfNet& part, int reader_threads,
                       const std::map<std::string, BatchSource>& given)
    : model_(net.file.path),
      data_(part.file, net.state, {.seed = 1, .reader_threads = reader_threads, .notice = net.notice}),
      executor_(data_.network(), compile(data_.network()), parameters_, sources_of(data_, given)) {
  for (const std::string& output : part.outputs) tensors_.push_back(data_.network().tensor(output));
  load_weights(net.weights);
}

void AppliedNet::load_weights(const std::vector<std::string>& files) {
  std::vector<std::string> lacking;
  for (size_t i = 0; i < files.size(); ++i) {
    std::vector<std::string> passed_over = cortado::load_weights(files[i], executor_, parameters_).of_network;
    if (i == 0) lacking = passed_over;
    std::erase_if(lacking, [&](const std::string& layer) {
      return std::ranges::find(passed_over, layer) == passed_over.end();
    });
  }
  if (lacking.empty()) return;
  throw UserError(
      fmt::format("{} has no weights of layer{} '{}' of {}; give those that this net was trained to",
                  fmt::join(files, ", "), lacking.size() > 1 ? "s" : "", fmt::join(lacking, "', '"), model_));
}

int64_t AppliedNet::samples_of_data() const {
  int64_t samples = 0;
  for (const auto& [layer, records] : data_.records()) {
    if (records == 0)
      throw UserError(
          fmt::format("{}: the samples of layer '{}' have no end; give a number of batches", model_, layer));
    if (samples > 0 && records != samples)
      throw UserError(fmt::format("{}: its source layers have {} and {} samples; give a number of batches",
                                  model_, samples, records));
    samples = records;
  }
  if (samples == 0) throw UserError(fmt::format("{}: no layer brings samples in", model_));
  return samples;
}

void AppliedNet::run() { executor_.run(batches_++); }

}  // namespace cortado
