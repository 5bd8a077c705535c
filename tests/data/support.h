#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string>

#include "cortado/base/error.h"
#include "cortado/data/image.h"

#include "tests/base/scratch_folder.h"

namespace cortado {

inline std::string test_image(const std::string& name) {
  return std::string(CORTADO_SOURCE_DIR) + "/tests/data/images/" + name;
}

inline void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A picture in which every pixel and channel differs from its neighbours.
inline Image pattern(int height, int width, int channels, int seed = 0) {
  Image image(height, width, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(37 * i + 101 * seed);
  return image;
}

// The folder of real data sets, from the environment or beside the sources; "" when absent.
inline std::string real_data() {
  const char* given = std::getenv("CORTADO_DATA");
  std::filesystem::path folder =
      given ? std::filesystem::path(given) : std::filesystem::path(CORTADO_SOURCE_DIR) / "../shared/data";
  return std::filesystem::exists(folder / "photos-50.tar") ? folder.string() : "";
}

}  // namespace cortado
