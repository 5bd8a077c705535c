#pragma once

#include <string>

#include "cortado/kernels/kernel.h"

#include "tests/kernels/draw.h"

namespace cortado::check {

// A random Convolution or Deconvolution on one to three spatial axes, half of them with a ReLU after it.
// `few`: of images of few pixels, so that most windows stick out.
Task random_products(check::Draw& draw, bool few);

// The part of it that one device computes.
Task random_part(check::Draw& draw, const Task& whole);

// Its tensors, types, parts and windows.
std::string text_of_products(const Task& task, int number);

}  // namespace cortado::check
