#pragma once

#include "cortado/parallel/schedule.h"
#include "cortado/program/program.h"

namespace cortado {

// The passes of lower(), each in its own file.

// Makes a Work of every operation that this rank takes part in, the movements among them; with `fuse`, of a
// chain of layers where one kernel runs it. (works.cpp)
void make_works(Program& program, const Network& network, const TaskOracle& oracle, bool fuse);

// Gives every value a buffer, in place where no one needs the old value, and makes the forward steps.
// (forward.cpp)
void place_forward(Program& program, const Network& network);

// Makes the backward steps in reverse order, the adjoints of movements, the sums where a tensor has several
// consumers, the sums of gradients over ranks, and the updates. With `keep_gradients` none is written over
// another. `passing_gradients`: LowerOptions. (backward.cpp)
void place_backward(Program& program, const Network& network, bool keep_gradients,
                    bool passing_gradients = false);

// Splits messages between ranks that hold the same samples (halos) into two, of half the samples each, and
// also the steps that compute what is sent and the steps that wait for it: one half is computed while the
// other is under way. (halves.cpp)
void halve_halos(Program& program, const TaskOracle& oracle);

// Lets the forward steps of operations that are recomputed (recompute.h) run again in the backward pass, just
// before what they make is needed there. Without results for this rank only messages run again.
// (recompute.cpp)
void recompute(Program& program, const Network& network);

// Puts sums of gradients over one group together into chunks; a chunk's sum takes the place of its last
// gradient's. (chunks.cpp)
void chunk_gradients(Program& program, const Network& network, const GradientChunks& chunks);

// Moves the updates of parameters to before their first use in the next iteration, save those that owners
// send. Moves also the steps that compute whole gradients on every replica. On one rank it moves nothing.
// (late_updates.cpp)
void delay_updates(Program& program);

// Adds the waits between steps that touch the same buffer or parameter, across iterations as well. The
// barrier waits for all messages of the forward pass, but for carried ones, and the first message after it
// for the barrier. (waits.cpp)
void add_waits(Program& program);

// Computes the life of every buffer and lays them out in one arena. (buffers.cpp)
void plan_buffers(Program& program, const Network& network, bool keep_tensors);

// Adds the waits between steps whose buffers take turns in the same memory. (waits.cpp)
void add_memory_waits(Program& program);

// Sets Step::needed of each message. (need.cpp)
void find_needs(Program& program);

// The Work of the longest chain of layers from `first` on that one kernel runs, as the oracle says; without
// `fuse`, of that layer alone. (fuse.cpp)
Work make_chain(const Program& program, const Network& network, const TaskOracle& oracle,
                OperationIndex first, bool fuse);

// The step that runs a movement or its adjoint between two views; nowhere: this rank has no part of the
// tensor before (`from`) or after (`to`). The forward and the backward pass share it. (exchange.cpp)
Step exchange_step(Program& program, WorkIndex work, bool backward, const View& from, const View& to);

// Appends the views of `more` that lie in a buffer. (exchange.cpp)
void append_located(std::vector<View>& views, const std::vector<View>& more);

}  // namespace cortado
