#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cortado {

// A rectangle of pixels of one image, corners included.
struct ImageWindow {
  int image = 0;  // index in WindowList::images
  int label = 0;  // 0: background
  int x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

// A window file as R-CNN writes it. Words with spaces between them; for each image
//
//   # INDEX  PATH  CHANNELS HEIGHT WIDTH  WINDOWS
//
// and, as often as WINDOWS says, "LABEL OVERLAP X1 Y1 X2 Y2".
struct WindowList {
  std::vector<std::string> images;
  std::vector<ImageWindow> foreground;  // of at least the first threshold's overlap
  std::vector<ImageWindow> background;  // of less than the second's; their label is 0
};

// Throws UserError naming file and line: missing, another word than expected, no images.
WindowList read_window_list(const std::string& path, double foreground_threshold,
                            double background_threshold);

// The same of a file's content; `path` is for messages.
WindowList parse_window_list(const std::string& path, std::string_view text, double foreground_threshold,
                             double background_threshold);

}  // namespace cortado
