#pragma once

#include <string>
#include <vector>

#include "cortado/base/box.h"
#include "cortado/base/element_type.h"
#include "cortado/base/index.h"
#include "cortado/base/units.h"

namespace cortado {

using WorkIndex = TypedIndex<struct WorkTag>;      // of Program::works
using StepIndex = TypedIndex<struct StepTag>;      // of Program::steps
using BufferIndex = TypedIndex<struct BufferTag>;  // of Program::buffers

// A piece of memory with a life: from the step that first writes it to the step that last reads it.
struct Buffer {
  // batch: lies in a reader's memory; staging: messages, packed
  enum class Kind { batch, activation, gradient, saved, scratch, sums, staging };
  std::string name;
  Kind kind = Kind::activation;
  ElementType type = ElementType::f32;  // of its elements; saved and scratch hold what the kernel likes
  Bytes size;
  StepIndex first_step{}, last_step{};
  // Where what lies here is made again, the memory is free in between: the buffer lives from first_step to
  // `released` and from `again` to last_step. Nowhere: it lives throughout.
  StepIndex released{}, again{};
  // In the arena, of the first life and of the second; set by plan_buffers.
  int64_t offset = -1, offset_again = -1;

  struct Life {
    StepIndex first, last;
    int64_t offset = -1;
  };
  std::vector<Life> lives() const;  // one or two; of a buffer that nobody touches none
  bool lives_at(StepIndex step) const;
  // Where it lies at a step that touches it, and at the end of the iteration.
  int64_t offset_at(StepIndex step) const { return again && step >= again ? offset_again : offset; }
  int64_t offset_at_end() const { return again ? offset_again : offset; }
};

// Where in a buffer something lies: in all of it, or in the run of bytes of some samples.
struct View {
  BufferIndex buffer{};
  Range bytes{};
  explicit operator bool() const { return static_cast<bool>(buffer); }
  bool operator==(const View&) const = default;
};

bool overlap(const View& one, const View& other);  // of one buffer, with bytes in common

}  // namespace cortado
