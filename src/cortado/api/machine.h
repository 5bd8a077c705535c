#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace cortado::api {

// The devices that a plan or a simulation is for, and the links between them. It need not be at hand. A
// value.
class Machine {
 public:
  // A file (.json, or a path with '/'), or the name of a ready one. Throws UserError naming file and key, or
  // the names that are known.
  Machine(const std::string& name_or_file);
  Machine(const char* name_or_file) : Machine(std::string(name_or_file)) {}
  static Machine from_text(const std::string& json, const std::string& name_in_errors = "machine");
  static std::vector<std::string> ready();  // names

  std::string name() const;
  int devices() const;
  int nodes() const;
  struct Device {
    std::string name;
    int node = 0;
    double peak_flops = 0;        // a second, of float32
    double bf16_peak_flops = 0;   // a second, of products of bfloat16; 0: not known
    double memory_bandwidth = 0;  // bytes a second
    int64_t memory_bytes = 0;
  };
  Device device(int index) const;    // throws UserError where there is none
  Machine first(int devices) const;  // throws UserError where there are not so many
  std::string text() const;          // JSON, as from_text takes it

  struct Impl;
  explicit Machine(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }  // for Cortado's own sources

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace cortado::api
