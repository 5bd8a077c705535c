#include "cortado/data/callback_reader.h"

#include "cortado/base/spoken_order.h"

namespace cortado {

CallbackReader::CallbackReader(std::vector<Shape> shapes, Fill fill)
    : tops_(std::move(shapes)),
      samples_{0, tops_.batch_size()},
      fill_(std::move(fill)),
      spoken_(tops_.shapes().size()) {}

void CallbackReader::restrict_to(Range samples) {
  tops_.restrict_to(samples);
  samples_ = samples;
}

Shape CallbackReader::rows_of(size_t top) const {
  Shape shape = tops_.shapes()[top];
  if (has_row_per_sample(shape, tops_.batch_size())) shape.set(0, samples_.size());
  return shape;
}

Batch CallbackReader::next() {
  Request request{.number = position_ / tops_.batch_size(), .samples = samples_, .shapes = {}, .tops = {}};
  for (size_t top = 0; top < spoken_.size(); ++top) {
    const Shape shape = rows_of(top);
    request.shapes.push_back(shape);
    if (shape.rank() > 2) spoken_[top].resize(static_cast<size_t>(shape.size()));
    request.tops.push_back(shape.rank() > 2 ? std::span(spoken_[top]) : tops_.values(top));
  }
  fill_(request);
  for (size_t top = 0; top < spoken_.size(); ++top)
    if (!spoken_[top].empty())
      from_spoken(request.shapes[top], spoken_[top].data(), tops_.values(top).data());
  Batch batch = tops_.batch(position_);
  position_ += tops_.batch_size();
  return batch;
}

}  // namespace cortado
