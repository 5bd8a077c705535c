#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string>

#include "cortado/base/error.h"
#include "cortado/data/image.h"

namespace cortado {

// A folder of its own, removed with all it holds.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string path = (std::filesystem::temp_directory_path() / "cortado_data_XXXXXX").string();
    path_ = mkdtemp(path.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// The message of the UserError that `action` throws; "" when it throws none.
template <typename Action>
std::string user_error(Action&& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

inline std::string test_image(const std::string& name) {
  return std::string(CORTADO_SOURCE_DIR) + "/tests/data/images/" + name;
}

inline void write_bytes(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
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
