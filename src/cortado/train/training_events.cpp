#include "cortado/train/training_events.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace cortado {

TrainingEvents::TrainingEvents(const Options& options, Trainer& trainer)
    : trainer_(trainer), histogram_interval_(options.histogram_interval) {
  if (!options.writes) return;
  file_ = std::make_unique<EventFile>("--tensorboard", options.folder);
  if (options.goes_on) file_->restart(trainer.iteration());
}

void TrainingEvents::iteration(const IterationReport& r) {
  if (!r.updated) return;
  const double rate = static_cast<double>(r.images) / std::max(1e-9, r.duration.count);
  if (file_)
    file_->write({.wall_time = wall_time_now(),
                  .step = r.iteration,
                  .values = {{"train/loss", r.loss},
                             {"train/smoothed_loss", r.smoothed_loss},
                             {"train/learning_rate", r.learning_rate},
                             {"speed/images_per_second", rate},
                             {"speed/exposed_communication_seconds", r.exposed_communication.count},
                             {"speed/data_wait_seconds", r.data_wait.count}}});
  const int64_t done = r.iteration + 1;
  if (histogram_interval_ > 0 && done % histogram_interval_ == 0) write_histograms(done);
}

void TrainingEvents::test(const TestReport& r) {
  if (!file_) return;
  Event event{.wall_time = wall_time_now(), .step = r.iteration};
  const std::string net = r.net == 0 ? "test" : fmt::format("test{}", r.net);
  std::map<std::string, int> seen;  // an output of several elements has its name several times
  for (const OutputValue& output : r.outputs) {
    const int number = seen[output.name]++;
    const std::string tag = net + "/" + output.name + (number > 0 ? fmt::format("_{}", number) : "");
    event.values.push_back({tag, output.value});
  }
  file_->write(event);
}

void TrainingEvents::write_histograms(int64_t iterations_done) {
  trainer_.settle();
  Event event{.wall_time = wall_time_now(), .step = iterations_done};
  const Network& network = trainer_.train_net().network();
  for (const ParameterIndex p : indices(network.parameters())) {
    const std::vector<float> whole = trainer_.parameter(p);
    if (file_) event.values.push_back({network.parameters()[p].name, histogram_of(whole)});
  }
  if (file_) file_->write(event);
}

}  // namespace cortado
