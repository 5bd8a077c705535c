#include "cortado/layers/source.h"

#include "cortado/base/error.h"

namespace cortado {

std::string_view Source::type() const {
  switch (options_.kind) {
    case SourceOptions::Kind::data:
      return "Data";
    case SourceOptions::Kind::image_data:
      return "ImageData";
    case SourceOptions::Kind::hdf5_data:
      return "HDF5Data";
    case SourceOptions::Kind::memory_data:
      return "MemoryData";
    case SourceOptions::Kind::dummy_data:
      return "DummyData";
    case SourceOptions::Kind::input:
      return "Input";
    case SourceOptions::Kind::window_data:
      return "WindowData";
    case SourceOptions::Kind::volume_data:
      return "VolumeData";
  }
  return "?";
}

std::vector<Shape> Source::output_shapes(std::span<const Shape>, int) const {
  throw InternalError("shapes of a source layer come from its reader");
}

}  // namespace cortado
