#include "cortado/kernels/onednn/reorder.h"

#include <string>

#include "cortado/kernels/onednn/engine.h"

namespace cortado::onednn {
namespace {

dnnl::reorder::primitive_desc planned(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  return {engine(), from, engine(), to};
}

bool is_slow(const dnnl::reorder::primitive_desc& reorder) {
  const std::string implementation = reorder.impl_info_str();
  return implementation.starts_with("simple") || implementation.starts_with("ref");
}

}  // namespace

Reorder::Reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                 const dnnl::memory::desc& plain)
    : from_(from), plain_(plain), to_(to) {
  if (changes_nothing()) return;
  const auto whole = planned(from, to);
  direct_ = !is_slow(whole) || from == plain || to == plain;
  first_ = dnnl::reorder(direct_ ? whole : planned(from, plain));
  if (!direct_) second_ = dnnl::reorder(planned(plain, to));
}

int64_t Reorder::between_bytes() const { return direct_ ? 0 : static_cast<int64_t>(plain_.get_size()); }

void Reorder::run(const void* from, void* to, std::byte* between) const {
  const auto step = [](const dnnl::primitive& reorder, const dnnl::memory& source,
                       const dnnl::memory& target) {
    onednn::run("reorder", reorder, {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}});
  };
  if (direct_) return step(first_, view(from_, from), view(to_, to));
  step(first_, view(from_, from), view(plain_, between));
  step(second_, view(plain_, between), view(to_, to));
}

}  // namespace cortado::onednn
