#include "cortado/train/training_files.h"

#include "cortado/base/file.h"
#include "cortado/proto/caffe.pb.h"
#include "cortado/train/gather.h"

namespace cortado {

TrainingFiles::TrainingFiles(TrainingFileNames names, std::string snapshot, Communicator& job, bool again)
    : names_(std::move(names)), snapshot_(std::move(snapshot)), job_(job) {
  at_first_rank(&job_, [&] {
    if (!names_.output.empty()) folder_ = std::make_unique<TrainingFolder>(names_.output, snapshot_, again);
    return std::string();
  });
}

void TrainingFiles::begin(const std::string& command, std::vector<std::string> inputs,
                          caffe::SolverParameter solver, Trainer& trainer) {
  trainer_ = &trainer;
  const bool goes_on = !snapshot_.empty();
  if (folder_) {
    solver.set_snapshot_prefix(trainer.solver().snapshot_prefix);
    folder_->begin({.command = command,
                    .snapshot = snapshot_,
                    .first_iteration = trainer.iteration(),
                    .ranks = job_.size(),
                    .net = trainer.train_net().network().name(),
                    .inputs = std::move(inputs)},
                   solver, trainer.strategy());
    trainer.watch(*folder_);
  }
  if (!names_.log.empty() && first()) {
    log_ = std::make_unique<TrainingLog>(names_.log, goes_on || folder_);
    trainer.watch(*log_);
  }
  if (!names_.plot.empty()) trainer.watch(curves_);
  if (!names_.tensorboard.empty()) {
    events_ = std::make_unique<TrainingEvents>(
        TrainingEvents::Options{names_.tensorboard, names_.histograms, goes_on, first()}, trainer);
    trainer.watch(*events_);
  }
  if (!names_.trace.empty()) {
    last_ = std::make_unique<LastTimeline>(trainer.executor());
    trainer.watch(*last_);
  }
}

void TrainingFiles::end() {
  if (!names_.plot.empty() && first())
    write_file_atomically(names_.plot, curves_.svg("Training " + trainer_->train_net().network().name()));
  if (last_) write_job_trace(names_.trace, trainer_->executor(), last_->timeline(), job_);
  if (folder_) folder_->write_course();
}

}  // namespace cortado
