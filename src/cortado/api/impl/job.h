#pragma once

#include "cortado/api/job.h"
#include "cortado/comm/communicator.h"

namespace cortado::api {

struct Job::Impl {
  explicit Impl(std::unique_ptr<Communicator> ranks) : owned(std::move(ranks)), communicator(*owned) {}
  explicit Impl(Communicator& ranks) : communicator(ranks) {}

  std::unique_ptr<Communicator> owned;  // null: of whoever made this
  Communicator& communicator;
};

}  // namespace cortado::api
