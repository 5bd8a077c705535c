#include <fmt/format.h>

#include "cortado/data/datum.h"
#include "cortado/data/image_source.h"
#include "cortado/data/leveldb.h"
#include "cortado/data/lmdb.h"
#include "cortado/data/shuffle.h"

namespace cortado {

namespace {

std::unique_ptr<RecordDatabase> open_records(const SourceOptions& source) {
  if (source.leveldb) return std::make_unique<LeveldbReader>(source.source);
  return std::make_unique<LmdbReader>(source.source);
}

// Records in key order or, with `shuffle`, in a new one each epoch.
class DatabaseSource : public ImageSource {
 public:
  DatabaseSource(const SourceOptions& source, const ReaderOptions& options)
      : ImageSource(source, options),
        database_(open_records(source)),
        order_(records(), [this](int64_t epoch) { return shuffled_order(stream_, epoch, records()); }) {
    caffe::Datum datum;
    DatumPixels pixels;
    read_first_good(datum, pixels);
    set_sample_size(pixels.view.channels, pixels.view.height, pixels.view.width);
  }

  int64_t records() const override { return database_->size(); }
  int64_t record_at(int64_t position) override {
    return source_.shuffle ? order_.at(position) : position % records();
  }
  std::string record_name(int64_t record) override {
    return fmt::format("{} key '{}'", source_.source, database_->key(record));
  }

  void load(int64_t record, int64_t position, std::span<float* const> tops) override {
    thread_local caffe::Datum datum;
    thread_local DatumPixels pixels;
    parse_datum(database_->at(record).value, datum);
    datum_pixels(datum, color_mode(source_.transform), pixels);
    transform(pixels.view, datum.label(), position, tops);
  }

 private:
  // The first record, or with skip_corrupt the first that can be read, fixes the shape of all.
  void read_first_good(caffe::Datum& datum, DatumPixels& pixels) {
    for (int64_t record = 0; record < database_->size(); ++record) {
      try {
        parse_datum(database_->at(record).value, datum);
        return datum_pixels(datum, color_mode(source_.transform), pixels);
      } catch (const BrokenRecord& error) {
        if (!source_.skip_corrupt) throw UserError(fmt::format("{}: {}", record_name(record), error.what()));
      }
    }
    throw UserError(fmt::format("database {}: no record can be read", source_.source));
  }

  std::unique_ptr<RecordDatabase> database_;
  EpochOrder order_;
};

}  // namespace

std::unique_ptr<SampleSource> open_database(const SourceOptions& source, const ReaderOptions& options) {
  return std::make_unique<DatabaseSource>(source, options);
}

}  // namespace cortado
