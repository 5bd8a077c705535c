#include "cortado/data/open_reader.h"

#include "cortado/base/error.h"
#include "cortado/data/hdf5_source.h"
#include "cortado/data/image_source.h"
#include "cortado/data/memory_reader.h"
#include "cortado/data/prefetch.h"
#include "cortado/data/volume_source.h"
#include "cortado/data/window_source.h"

namespace cortado {

namespace {

std::unique_ptr<Reader> prefetch(std::unique_ptr<SampleSource> samples, const SourceOptions& source,
                                 const ReaderOptions& options) {
  return std::make_unique<PrefetchReader>(std::move(samples), source.batch_size, source.skip_corrupt,
                                          options);
}

}  // namespace

std::unique_ptr<Reader> open_reader(const SourceOptions& source, const ReaderOptions& options) {
  switch (source.kind) {
    case SourceOptions::Kind::data:
      return prefetch(open_database(source, options), source, options);
    case SourceOptions::Kind::image_data:
      return prefetch(open_image_list(source, options), source, options);
    case SourceOptions::Kind::hdf5_data:
      return prefetch(open_hdf5_list(source, options), source, options);
    case SourceOptions::Kind::window_data:
      return prefetch(open_window_list(source, options), source, options);
    case SourceOptions::Kind::volume_data:
      return prefetch(open_volume_list(source, options), source, options);
    case SourceOptions::Kind::memory_data:
      return std::make_unique<MemoryReader>(source, options);
    case SourceOptions::Kind::dummy_data:
      return std::make_unique<DummyReader>(source, options);
    case SourceOptions::Kind::input:
      return std::make_unique<InputReader>(source, options);
  }
  throw InternalError("a source layer of unknown kind");
}

}  // namespace cortado
