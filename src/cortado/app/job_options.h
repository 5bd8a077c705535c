#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>

#include "cortado/auto/job_cut.h"
#include "cortado/base/command_files.h"
#include "cortado/cli/limits.h"
#include "cortado/comm/communicator.h"
#include "cortado/exec/rank_device.h"
#include "cortado/parallel/strategy.h"

namespace cortado {

// Options that say on what ranks a network is computed, and how they share the work.
struct JobOptions {
  JobCut cut;
  int threads = 0;  // 0: as many as this process may use
  bool no_bind = false;
  int ranks = 0;               // 0: as many as the launcher started
  std::string launch, listen;  // these and the time limits: read by start_job() (app/launch.h)
  int stall_timeout = default_time_limit, peer_timeout = default_time_limit;  // seconds
  DeviceWords devices;
  RankDevice device;  // join_job() opens it, and lets `cut` name it
  bool verbose = false;
};
// Adds all options of a job: the groups below, --strategy and the choice of kernels.
void add_job_options(CLI::App& command, JobOptions& options);
// Adds threads, ranks and add_launch_options().
void add_rank_options(CLI::App& command, JobOptions& options);
// Adds what says how ranks are started and watched.
void add_launch_options(CLI::App& command, JobOptions& options);
// Adds what changes a strategy's schedule.
void add_schedule_options(CLI::App& command, ScheduleChanges& options);
// Adds what says on which devices ranks compute.
void add_device_options(CLI::App& command, DeviceWords& words);

// Joins the job, opens this rank's device, sets the compute threads, and silences the standard output of all
// ranks but the first. Throws UserError for what this version does not do.
std::unique_ptr<Communicator> join_job(JobOptions& options);
// Adds the files that these options have a command read.
void add_inputs(CommandFiles& files, const JobOptions& options);

}  // namespace cortado
