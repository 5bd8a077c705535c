#include "cortado/kernels/onednn/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <span>
#include <vector>

#include "cortado/base/error.h"

namespace cortado::onednn {

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

namespace {

bool has(dnnl::cpu_isa wanted) {
  const auto bits = static_cast<unsigned>(wanted);  // a bit for each set of instructions
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

}  // namespace

bool has_bf16_instructions() { return has(dnnl::cpu_isa::avx512_core_bf16); }
bool has_bf16_tiles() { return has(dnnl::cpu_isa::avx512_core_amx); }

dnnl::memory::data_type data_type(ElementType type) {
  ensure(type == ElementType::f32 || type == ElementType::bf16, "a type that oneDNN's kernels take");
  return type == ElementType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

dnnl::memory::desc activation(const Shape& local, ElementType type) {
  const Strides strides = channels_last_strides(local);
  return {dnnl::memory::dims(local.extents().begin(), local.extents().end()), data_type(type),
          dnnl::memory::dims(strides.of.begin(), strides.of.begin() + local.rank())};
}

dnnl::memory::desc ordered(const dnnl::memory::dims& extents, const std::vector<int>& axes) {
  dnnl::memory::dims strides(extents.size());
  int64_t step = 1;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    strides[*axis] = step;
    step *= extents[*axis];
  }
  return {extents, dnnl::memory::data_type::f32, strides};
}

dnnl::memory::desc row_major(const dnnl::memory::dims& extents) {
  std::vector<int> axes(extents.size());
  std::iota(axes.begin(), axes.end(), 0);
  return ordered(extents, axes);
}

std::string order_name(const dnnl::memory::desc& desc) {
  const dnnl_memory_desc_t& data = desc.data;
  if (data.format_kind != dnnl_blocked || data.extra.flags != 0) return "";
  const auto& blocking = data.format_desc.blocking;
  auto list = [](const dnnl_dim_t* values, int count) {
    return fmt::format("{}", fmt::join(std::span(values, static_cast<size_t>(count)), ","));
  };
  return fmt::format("onednn {} padded {} strides {} blocks {} of axes {}", list(data.dims, data.ndims),
                     list(data.padded_dims, data.ndims), list(blocking.strides, data.ndims),
                     list(blocking.inner_blks, blocking.inner_nblks),
                     list(blocking.inner_idxs, blocking.inner_nblks));
}

dnnl::memory view(const dnnl::memory::desc& desc, const void* data) {
  return {desc, engine(), const_cast<void*>(data)};
}

void run(const char* what, const dnnl::primitive& primitive, const Memory& arguments) {
  thread_local dnnl::stream stream(engine());
  try {
    primitive.execute(stream, arguments);
    stream.wait();
  } catch (const dnnl::error& error) {
    throw InternalError(fmt::format("oneDNN's {} failed: {}", what, error.what()));
  }
}

void reorder(const dnnl::memory& source, const dnnl::memory& target) {
  run("reorder", dnnl::reorder(source, target), {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}});
}

}  // namespace cortado::onednn
