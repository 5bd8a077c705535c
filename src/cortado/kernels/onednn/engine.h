#pragma once

#include <dnnl.hpp>
#include <string>
#include <unordered_map>

#include "cortado/base/element_type.h"
#include "cortado/base/shape.h"

namespace cortado::onednn {

// The one CPU engine of the process. Kernels run on a stream of the calling thread.
const dnnl::engine& engine();

// Whether oneDNN multiplies bf16 numbers by this processor's instructions for them.
bool has_bf16_instructions();
// Whether it does so tile by tile (AMX).
bool has_bf16_tiles();

// f32 or bf16.
dnnl::memory::data_type data_type(ElementType type);

// A dense channels-last tensor (base/shape.h).
dnnl::memory::desc activation(const Shape& local, ElementType type = ElementType::f32);
// A dense tensor of float32 of these extents whose axes lie in memory in the order `axes`, slowest first.
dnnl::memory::desc ordered(const dnnl::memory::dims& extents, const std::vector<int>& axes);
// The same, row-major.
dnnl::memory::desc row_major(const dnnl::memory::dims& extents);

// Text that two descriptors share only if they are the same order in memory of tensors of the same extents.
// Empty when the order is not a blocked one.
std::string order_name(const dnnl::memory::desc& desc);

// A memory object over `data`, which it does not own.
dnnl::memory view(const dnnl::memory::desc& desc, const void* data);

// What a primitive reads and writes, by oneDNN's numbers of arguments.
using Memory = std::unordered_map<int, dnnl::memory>;

// Runs the primitive and waits for it. Throws InternalError naming `what` when it fails.
void run(const char* what, const dnnl::primitive& primitive, const Memory& arguments);

// target = source in the order and type of the target; elements that only pad become zero.
void reorder(const dnnl::memory& source, const dnnl::memory& target);

}  // namespace cortado::onednn
