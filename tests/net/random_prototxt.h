#pragma once

#include <google/protobuf/descriptor.h>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cortado/net/network.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado::testing {

// The three generations of Caffe's model files.
enum class Generation { v0, v1, current };

// Draws model files by the rules of caffe.proto: layers of every type with any of their fields, connected to
// blobs that exist. Most fields hold small values that Caffe's users give; a few hold anything that the type
// allows. The same seed gives the same file.
class RandomPrototxt {
 public:
  explicit RandomPrototxt(uint32_t seed);

  // A file that begins with its inputs. Layers that `accepted` refuses are mostly left out, so that what
  // follows them is still worth drawing; every file that is asked about is a case of its own.
  caffe::NetParameter draw(const std::function<bool(const caffe::NetParameter&)>& accepted);

  // Every field that was ever set, by full name ("caffe.PoolingParameter.pad_h").
  const std::set<std::string>& fields() const { return fields_; }
  // Every type that a drawn layer named.
  const std::set<std::string>& types() const { return types_; }

 private:
  using Message = google::protobuf::Message;
  using Field = google::protobuf::FieldDescriptor;

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(random_) < probability; }

  void add_inputs(caffe::NetParameter& net);
  void add_layer(caffe::NetParameter& net);
  void add_v0_layer(caffe::V1LayerParameter& layer);
  template <typename Layer>
  void connect(Layer& layer, const std::string& type);
  std::string some_blob();
  std::string filler_type();

  void fill(Message& message, double probability, int depth);
  void fill_layer(Message& layer, const std::string& type);
  void fill_field(Message& message, const Field& field, double probability, int depth);
  void set_value(Message& message, const Field& field);
  int64_t some_integer();
  double some_real();
  std::string some_text(const Field& field);
  void give_what_is_needed(Message& options);

  std::mt19937 random_;
  Generation generation_;
  std::vector<std::string> blobs_;
  int made_ = 0;
  std::set<std::string> fields_, types_;
};

// The types of all layers that Caffe has, in the spelling of current files.
const std::vector<std::string>& caffe_layer_types();

// What a network is, one line a node, tensor and parameter: equal texts, equal networks.
std::string description(const Network& network);

}  // namespace cortado::testing
