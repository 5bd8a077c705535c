#include "cortado/data/memory_reader.h"

#include <fmt/format.h>

#include "cortado/base/error.h"

namespace cortado {

namespace {

// One shape a top, or one for all.
std::vector<Shape> shapes_of_tops(const SourceOptions& source, int tops) {
  const auto given = static_cast<int>(source.shapes.size());
  if (given == 0) throw UserError("it has no shape; add input_param { shape { dim: ... } }");
  if (given != tops && given != 1)
    throw UserError(fmt::format("{} shapes for {} tops; give one, or one a top", given, tops));
  return given == tops ? source.shapes : std::vector<Shape>(tops, source.shapes[0]);
}

void check_filler(const Filler& filler) {
  using Type = Filler::Type;
  const bool known =
      filler.type == Type::constant || filler.type == Type::uniform || filler.type == Type::gaussian;
  if (!known || filler.sparse >= 0)
    throw UserError(
        "DummyData fills with constant, uniform or dense gaussian values only; choose one of them");
}

float fill_value(const Filler& filler, const RandomStream& stream, uint64_t index) {
  switch (filler.type) {
    case Filler::Type::uniform:
      return static_cast<float>(stream.uniform(index, 0, filler.min, filler.max));
    case Filler::Type::gaussian:
      return static_cast<float>(stream.normal(index, 0, filler.mean, filler.std));
    default:
      return static_cast<float>(filler.value);
  }
}

}  // namespace

TopBuffers::TopBuffers(std::vector<Shape> shapes)
    : shapes_(std::move(shapes)), part_(part_of_samples(shapes_, {0, batch_size_of(shapes_[0])})) {}

void TopBuffers::restrict_to(const BatchPart& part) {
  ensure(buffers_.empty(), "a reader is restricted before its first batch");
  ensure(part.tops.size() == shapes_.size(), "a reader is restricted to a box of each top");
  part_ = part;
}

std::span<float> TopBuffers::values(size_t top) {
  while (buffers_.size() < shapes_.size()) buffers_.emplace_back(part_.tops[buffers_.size()].shape().size());
  return buffers_.at(top).span();
}

Batch TopBuffers::batch(int64_t first_sample) {
  Batch batch{.tensors = {}, .first_sample = first_sample};
  for (size_t top = 0; top < shapes_.size(); ++top) batch.tensors.push_back(values(top).data());
  return batch;
}

InputReader::InputReader(const SourceOptions& source, const ReaderOptions& options)
    : tops_(shapes_of_tops(source, options.tops)) {}

Batch InputReader::next() {
  Batch batch = tops_.batch(position_);
  position_ += tops_.batch_size();
  return batch;
}

MemoryReader::MemoryReader(const SourceOptions& source, const ReaderOptions& options) {
  if (options.tops != 2)
    throw UserError(fmt::format("MemoryData gives two tops, data and label; there are {}", options.tops));
  if (source.batch_size < 1 || source.shapes.size() != 1 || source.shapes[0].rank() != 3 ||
      source.shapes[0].size() < 1)
    throw UserError("MemoryData needs batch_size, channels, height and width, all at least 1");
  const Shape& sample = source.shapes[0];
  data_shape_ = {source.batch_size, sample[0], sample[1], sample[2]};
  part_ = part_of_samples(shapes(), {0, source.batch_size});
  data_.resize(data_shape_.size());
  labels_.resize(source.batch_size);
}

void MemoryReader::set(std::span<const float> data, std::span<const float> labels) {
  const auto samples = static_cast<int64_t>(labels.size());
  if (samples == 0 || samples % data_shape_[0] != 0 ||
      static_cast<int64_t>(data.size()) != samples * data_shape_.count(1))
    throw UserError(
        fmt::format("MemoryData takes whole batches of {} samples of {} values; given {} values and {} "
                    "labels",
                    data_shape_[0], data_shape_.count(1), data.size(), samples));
  data_.assign(data.begin(), data.end());
  labels_.assign(labels.begin(), labels.end());
  position_ = 0;
}

Batch MemoryReader::next() {
  const auto batch = data_shape_[0], batches = static_cast<int64_t>(labels_.size()) / batch;
  const int64_t row = position_ / batch % batches * batch;
  const float* data = data_.data() + row * data_shape_.count(1);
  if (has_whole_rows(data_shape_, part_.tops[0])) {
    data += part_.samples.begin * data_shape_.count(1);
  } else {
    cut_.resize(static_cast<size_t>(part_.tops[0].shape().size()));
    cut_out(Box::whole(data_shape_), data, part_.tops[0], cut_.data());
    data = cut_.data();
  }
  Batch result{{data, labels_.data() + row + part_.samples.begin}, position_};
  position_ += batch;
  return result;
}

DummyReader::DummyReader(const SourceOptions& source, const ReaderOptions& options)
    : tops_(shapes_of_tops(source, options.tops)),
      fillers_(source.fillers.empty() ? std::vector<Filler>(1) : source.fillers),
      stream_{options.seed, 0, RandomStream::owner_of(options.layer_name)} {
  const size_t tops = tops_.shapes().size();
  if (fillers_.size() == 1) fillers_.resize(tops, Filler(fillers_[0]));
  if (fillers_.size() != tops)
    throw UserError(
        fmt::format("{} fillers for {} tops; give none, one, or one a top", fillers_.size(), tops));
  for (const Filler& filler : fillers_) check_filler(filler);
}

Batch DummyReader::next() {
  RandomStream stream = stream_;
  stream.iteration = static_cast<uint64_t>(position_);
  for (size_t t = 0; t < fillers_.size(); ++t) {
    if (filled_ && fillers_[t].type == Filler::Type::constant) continue;
    stream.owner = stream_.owner + static_cast<uint32_t>(t);
    float* value = tops_.values(t).data();
    for_each_run(Box::whole(tops_.shapes()[t]), tops_.part().tops[t], [&](int64_t first, int64_t count) {
      for (int64_t i = first; i < first + count; ++i)
        *value++ = fill_value(fillers_[t], stream, static_cast<uint64_t>(i));
    });
  }
  filled_ = true;
  Batch batch = tops_.batch(position_);
  position_ += tops_.batch_size();
  return batch;
}

}  // namespace cortado
