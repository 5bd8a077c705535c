#pragma once

#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <string>

#include "cortado/base/error.h"
#include "cortado/net/net_file.h"

namespace cortado {

// The message of the UserError that `action` throws; "" when it throws none.
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

inline LoadedNetwork load(const std::string& text, Phase phase = Phase::train) {
  return load_network(parse_net(text, "net.prototxt"), net_state(phase), declared_source_shapes);
}

inline std::string load_error(const std::string& text) {
  return error_of([&] { load(text); });
}

// A folder that goes away with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "cortado-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  size_t entries() const {
    auto all = std::filesystem::directory_iterator(path_);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

 private:
  std::filesystem::path path_;
};

}  // namespace cortado
