#pragma once

#include "cortado/data/resize.h"
#include "cortado/data/window_list.h"
#include "cortado/layers/source.h"

namespace cortado {

// What is cut out of an image for a window, and where it goes in a square sample whose other pixels are 0.
struct WindowCrop {
  Region region;              // of the image
  int y = 0, x = 0;           // in the sample
  int height = 0, width = 0;  // there, after it is resized
};

// As R-CNN does it. With context or square crops the window grows around its centre so that it, resized to
// size x size, has `context_pad` pixels of context on each side; what of that lies outside of the image is
// left out. Throws UserError, with the reason alone, for a window that is empty, outside of the image or,
// where it does not grow, partly so.
WindowCrop window_crop(const ImageWindow& window, int image_height, int image_width,
                       const WindowOptions& options, int size, bool mirrored);

}  // namespace cortado
