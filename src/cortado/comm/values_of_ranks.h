#pragma once

#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "cortado/comm/communicator.h"

namespace cortado {

// Every rank's value, by rank, at every rank. All ranks call it.
template <typename Value>
std::vector<Value> values_of_ranks(Communicator& job, const Value& mine) {
  static_assert(std::is_trivially_copyable_v<Value>);
  std::vector<Value> values;
  for (const auto& bytes : job.all_to_all_bytes(std::as_bytes(std::span(&mine, 1))))
    std::memcpy(&values.emplace_back(), bytes.data(), sizeof mine);
  return values;
}

}  // namespace cortado
