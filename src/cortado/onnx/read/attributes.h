#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cortado/onnx/constant.h"
#include "cortado/proto/onnx.pb.h"

namespace cortado::onnx {

// The attributes of a node. Each is read by name; check_all_read() then refuses those that nobody read, since
// they may change what the node computes. Throws UserError naming the attribute: of another type.
class Attributes {
 public:
  explicit Attributes(const NodeProto& node) : node_(node) {}

  bool has(const std::string& name) const { return find(name) != nullptr; }
  int64_t integer(const std::string& name, int64_t otherwise) const;
  double number(const std::string& name, double otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  std::optional<std::vector<int64_t>> integers(const std::string& name) const;
  std::optional<std::vector<float>> numbers(const std::string& name) const;
  const TensorProto* tensor(const std::string& name) const;  // null: not given

  // Counts it as read: it changes nothing that Cortado computes.
  void pass_over(const std::string& name) const { find(name); }
  void check_all_read() const;

 private:
  const AttributeProto* find(const std::string& name) const;
  const AttributeProto* find(const std::string& name, AttributeProto::AttributeType type) const;

  const NodeProto& node_;
  mutable std::set<std::string> read_;
};

}  // namespace cortado::onnx
