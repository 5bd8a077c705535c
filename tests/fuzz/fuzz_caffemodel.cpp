// Any bytes are either weights and a network (parsed, upgraded, built, matched) or a UserError; so are solver
// states and mean images.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cortado/base/error.h"
#include "cortado/net/read_net.h"
#include "cortado/net/text_format.h"
#include "cortado/net/weights.h"

#include "tests/fuzz/build_net.h"

namespace {

using namespace cortado;

void read_net_with_weights(std::string_view bytes) {
  caffe::NetParameter message;
  parse_binary(bytes, "fuzz.caffemodel", message);
  NetFile file = net_of_message(std::move(message), "fuzz.caffemodel");
  build_both_phases(file);
  for (const caffe::LayerParameter& layer : file.net.layer()) {
    for (const caffe::BlobProto& blob : layer.blobs()) blob_of_message(blob, "blob");
  }
}

void read_solver_state(std::string_view bytes) {
  caffe::SolverState state;
  parse_binary(bytes, "fuzz.solverstate", state);
  for (const caffe::BlobProto& blob : state.history()) blob_of_message(blob, "history");
}

void read_blob(std::string_view bytes) {
  caffe::BlobProto blob;
  parse_binary(bytes, "fuzz.binaryproto", blob);
  blob_of_message(blob, "mean");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (auto read : {read_net_with_weights, read_solver_state, read_blob}) {
    try {
      read(bytes);
    } catch (const cortado::UserError&) {
    }
  }
  return 0;
}
