#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "cortado/base/box.h"
#include "cortado/data/volume_layout.h"

namespace cortado {

// A volume in a file, of which boxes are read; nothing else of it is ever in memory. Errors name the file.
class VolumeFile {
 public:
  // How the values of a file without a header lie in it: its extents, channels first.
  struct Raw {
    Shape extents;
    VolumeOptions::Element element = VolumeOptions::Element::float32;
    int64_t offset = 0;
  };

  // A NIfTI file where the name ends in ".nii", else one of raw values. `raw`: none: there are no such files.
  VolumeFile(std::string path, const std::optional<Raw>& raw);
  ~VolumeFile();
  VolumeFile(const VolumeFile&) = delete;
  VolumeFile& operator=(const VolumeFile&) = delete;

  const std::string& path() const { return path_; }
  const Shape& extents() const { return layout_.extents; }  // channels, depth, height, width

  // Calls take(channel, depth, height, values) for each row of a box of extents().
  using TakeRow = std::function<void(int64_t channel, int64_t depth, int64_t height, std::span<const float>)>;
  void read(const Box& box, const TakeRow& take) const;

 private:
  void read_bytes(int64_t offset, std::span<char> bytes) const;
  VolumeLayout read_layout(const std::optional<Raw>& raw) const;
  void convert(const char* bytes, std::span<float> values) const;

  std::string path_;
  int file_ = -1;
  VolumeLayout layout_;
};

}  // namespace cortado
