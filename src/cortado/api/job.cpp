#include "cortado/api/job.h"

#include "cortado/api/impl/job.h"
#include "cortado/comm/launched_rank.h"
#include "cortado/comm/local/local_job.h"
#include "cortado/comm/mpi.h"

namespace cortado::api {

Job::Job() : impl_(std::make_shared<Impl>(make_single_communicator())) {}

Job Job::launched() {
  return started_by_mpi() ? Job(std::make_shared<Impl>(make_mpi_communicator())) : Job();
}

void Job::local(int ranks, const std::function<void(Job&)>& body) {
  LocalJob(ranks).run([&](Communicator& communicator) {
    Job job(std::make_shared<Impl>(communicator));
    body(job);
  });
}

int Job::rank() const { return impl_->communicator.rank(); }
int Job::size() const { return impl_->communicator.size(); }

}  // namespace cortado::api
