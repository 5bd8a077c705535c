#pragma once

#include <cstddef>
#include <cstdint>
#include <dnnl.hpp>

namespace cortado::onednn {

// A copy of weights, or of their gradient, in another order or type, made ready once and run often. Where
// oneDNN has but slow general code for it (between two blocked orders mostly), it goes by way of the plain
// order.
class Reorder {
 public:
  Reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to, const dnnl::memory::desc& plain);

  bool changes_nothing() const { return from_ == to_; }
  int64_t between_bytes() const;  // of memory in which the plain copy lies for a while
  // Elements that only pad become zero.
  void run(const void* from, void* to, std::byte* between) const;

 private:
  dnnl::memory::desc from_, plain_, to_;
  bool direct_ = true;
  dnnl::primitive first_, second_;  // the one step; or to the plain order, and from there
};

}  // namespace cortado::onednn
