// Window files, and the crops of what windows they hold.
#include <cstddef>
#include <cstdint>

#include "cortado/base/error.h"
#include "cortado/data/window_crop.h"
#include "cortado/data/window_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cortado;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const WindowList list = parse_window_list("windows.txt", text, 0.5, 0.5);
    for (const auto* windows : {&list.foreground, &list.background})
      for (const ImageWindow& window : *windows)
        for (const bool square : {false, true}) {
          const WindowCrop crop =
              window_crop(window, 30, 40, {.context_pad = 2, .square = square}, 11, square);
          const Region& region = crop.region;
          if (region.y < 0 || region.x < 0 || region.y + region.height > 30 || region.x + region.width > 40 ||
              crop.y < 0 || crop.x < 0 || crop.y + crop.height > 11 || crop.x + crop.width > 11)
            __builtin_trap();
        }
  } catch (const UserError&) {
  }
  return 0;
}
