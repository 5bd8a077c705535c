#include "cortado/data/callback_reader.h"

#include "cortado/base/spoken_order.h"

namespace cortado {

CallbackReader::CallbackReader(std::vector<Shape> shapes, Fill fill)
    : tops_(std::move(shapes)), fill_(std::move(fill)), spoken_(tops_.shapes().size()) {}

Box CallbackReader::rows_of(size_t top) const {
  const Shape& shape = tops_.shapes()[top];
  Box box = Box::whole(shape);
  if (has_row_per_sample(shape, tops_.batch_size())) box[0] = tops_.part().samples;
  return box;
}

void CallbackReader::take(size_t top) {
  if (spoken_[top].empty()) return;
  const Box rows = rows_of(top), &kept = tops_.part().tops[top];
  if (rows == kept) return from_spoken(rows.shape(), spoken_[top].data(), tops_.values(top).data());
  std::vector<float> cut(static_cast<size_t>(kept.shape().size()));
  copy_common(rows, spoken_[top].data(), kept, cut.data());
  from_spoken(kept.shape(), cut.data(), tops_.values(top).data());
}

Batch CallbackReader::next() {
  Request request{
      .number = position_ / tops_.batch_size(), .samples = tops_.part().samples, .shapes = {}, .tops = {}};
  for (size_t top = 0; top < spoken_.size(); ++top) {
    const Box rows = rows_of(top);
    request.shapes.push_back(rows.shape());
    const bool in_place = rows.rank() <= 2 && rows == tops_.part().tops[top];
    if (!in_place) spoken_[top].resize(static_cast<size_t>(rows.shape().size()));
    request.tops.push_back(in_place ? tops_.values(top) : std::span(spoken_[top]));
  }
  fill_(request);
  for (size_t top = 0; top < spoken_.size(); ++top) take(top);
  Batch batch = tops_.batch(position_);
  position_ += tops_.batch_size();
  return batch;
}

}  // namespace cortado
