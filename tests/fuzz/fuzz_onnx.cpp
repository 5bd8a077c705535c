// Any bytes are either an ONNX model and a net that goes back to ONNX, or a UserError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cortado/base/error.h"
#include "cortado/net/read_net.h"
#include "cortado/net/text_format.h"
#include "cortado/onnx/export.h"
#include "cortado/onnx/import.h"

#include "tests/fuzz/build_net.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cortado;
  try {
    onnx::ModelProto model;
    parse_binary(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.onnx", model);
    const onnx::ImportedNet imported = onnx::import_model(model, "fuzz.onnx");
    build_both_phases(net_of_message(imported.net, "fuzz.prototxt"));
    const LoadedNetwork loaded = load_network(net_of_message(imported.net, "fuzz.prototxt"),
                                              net_state(Phase::test), declared_source_shapes);
    const WeightMatch match = match_weights(loaded.network, imported.weights, "fuzz.caffemodel");
    onnx::export_network(loaded.network, [&](ParameterIndex p) { return match.of_parameter[p]->values; });
  } catch (const UserError&) {
  }
  return 0;
}
