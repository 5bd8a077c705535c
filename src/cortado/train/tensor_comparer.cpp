#include "cortado/train/tensor_comparer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "cortado/exec/box_copy.h"

namespace cortado {
namespace {

using Which = TensorComparer::Which;

double finite_difference(double a, double b) {
  const double difference = std::abs(a - b);
  return std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity();
}

// A tensor or the gradient of one, as far as an executor holds it.
struct Held {
  std::span<const float> values;
  Box box;
};

std::optional<Held> held(const Executor& executor, TensorIndex tensor, Which which) {
  const bool activation = which == Which::activation;
  const auto values = activation ? executor.tensor(tensor) : executor.gradient(tensor);
  const auto box = activation ? executor.tensor_box(tensor) : executor.gradient_box(tensor);
  if (values.empty() || values.data() == nullptr || !box) return std::nullopt;
  if (box->shape().size() != static_cast<int64_t>(values.size())) return std::nullopt;
  return Held{values, *box};
}

}  // namespace

double largest_magnitude(std::span<const float> values) {
  double largest = 0;
  for (float value : values) largest = std::max(largest, std::abs(static_cast<double>(value)));
  return largest;
}

void keep_first(std::string& fault, std::string found) {
  if (fault.empty()) fault = std::move(found);
}

void keep_largest(std::optional<double>& difference, double found) {
  if (!difference || *difference < found) difference = found;
}

void Difference::add(std::span<const float> uncut, std::span<const float> cut, const std::string& where) {
  for (size_t i = 0; i < uncut.size(); ++i) {
    const double difference = finite_difference(uncut[i], cut[i]);
    squares_ += difference * difference;
    uncut_squares_ += static_cast<double>(uncut[i]) * uncut[i];
    if (difference <= largest_) continue;
    largest_ = difference;
    place_ = fmt::format("element {}{}: {} where it should be {}", i, where, cut[i], uncut[i]);
  }
  elements_ += static_cast<double>(uncut.size());
}

std::string Difference::fault(const std::string& name, double limit, double least) const {
  const double scale = std::max(std::sqrt(uncut_squares_), least * std::sqrt(elements_));
  const double norm = std::sqrt(squares_);
  if (std::isfinite(norm) && norm <= limit * scale) return {};
  return fmt::format(
      "{} differ by {:.2g} of their norm at iteration 1, at most {:.2g} is rounding; most at {}", name,
      norm / scale, limit, place_);
}

TensorComparer::TensorComparer(const Network& network, Communicator& job, const Executor& cut,
                               const Executor* uncut)
    : network_(network), job_(job), cut_(cut), uncut_(uncut) {
  std::vector<int64_t> mine;
  for (TensorIndex tensor : indices(network.tensors())) {
    for (Which which : {Which::activation, Which::gradient}) tell(tensor, which, mine);
  }
  for (const auto& bytes : job.all_to_all_bytes(std::as_bytes(std::span(mine)))) {
    std::vector<int64_t> theirs(bytes.size() / sizeof(int64_t));
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    hear(theirs);
  }
}

int64_t TensorComparer::elements_of_parts(TensorIndex tensor, Which which) const {
  int64_t elements = 0;
  for (const auto& parts : parts_)
    elements += parts[tensor][which] ? parts[tensor][which]->shape().size() : 0;
  return elements;
}

// At rank 0. Receives the parts of the other ranks. `magnitude`: gets the largest of the uncut tensor.
Difference TensorComparer::difference(TensorIndex tensor, Which which, double& magnitude) {
  const auto mine = held(cut_, tensor, which);
  const Held whole = *held(*uncut_, tensor, which);
  magnitude = largest_magnitude(whole.values);
  Difference difference;
  for (int rank = 0; rank < job_.size(); ++rank) {
    const auto& box = parts_[static_cast<size_t>(rank)][tensor][which];
    if (!box || box->empty()) continue;
    std::vector<float> expected(static_cast<size_t>(box->shape().size())), received;
    // Only read from.
    copy_box({whole.box, reinterpret_cast<std::byte*>(const_cast<float*>(whole.values.data()))},
             {*box, reinterpret_cast<std::byte*>(expected.data())}, *box);
    if (rank > 0) {
      received.resize(expected.size());
      job_.receive(rank, received);
    }
    difference.add(expected, rank > 0 ? std::span<const float>(received) : mine->values,
                   fmt::format(" of the part of rank {}", rank));
  }
  return difference;
}

void TensorComparer::compare(TensorIndex tensor, Which which, LayerDifference& layer) {
  const int64_t elements = elements_of_parts(tensor, which);
  if (!whole_[tensor][which] || elements == 0) return;
  if (job_.rank() > 0) {
    const auto mine = held(cut_, tensor, which);
    if (mine && !mine->box.empty()) job_.send(0, mine->values);
    return;
  }
  double magnitude = 0;
  const Difference found = difference(tensor, which, magnitude);
  const bool activation = which == Which::activation;
  const std::string name =
      fmt::format("{} '{}'", activation ? "activations" : "gradients of", network_.tensors()[tensor].name);
  keep_largest(activation ? layer.activation : layer.gradient,
               found.largest() == 0 ? 0 : found.largest() / magnitude);
  const bool is_batch = network_.nodes()[network_.tensors()[tensor].producer].layer->is_source();
  if (elements < shape_of(tensor).size() && !is_batch) {  // of a batch ranks hold what layers read
    keep_first(layer.lost_parts,
               fmt::format("the parts of {} that ranks hold are {} elements where the whole is {}", name,
                           elements, shape_of(tensor).size()));
  }
  keep_first(activation ? layer.activation_fault : layer.gradient_fault,
             found.fault(name, activation ? activation_limit : gradient_limit));
}

// Whether the uncut tensor is here, whether a part is, and which.
void TensorComparer::tell(TensorIndex tensor, Which which, std::vector<int64_t>& words) const {
  const bool whole = uncut_ && held(*uncut_, tensor, which);
  const auto part = held(cut_, tensor, which);
  words.push_back(whole);
  words.push_back(part.has_value());
  for (int axis = 0; axis < shape_of(tensor).rank(); ++axis) {
    words.push_back(part ? part->box[axis].begin : 0);
    words.push_back(part ? part->box[axis].end : 0);
  }
}

void TensorComparer::hear(const std::vector<int64_t>& words) {
  auto word = words.begin();
  PerTensor<std::optional<Box>> parts(network_.tensors().size());
  whole_.resize(parts.size());
  for (TensorIndex tensor : indices(parts)) {
    for (Which which : {Which::activation, Which::gradient}) {
      Box box = Box::whole(shape_of(tensor));
      if (*word++ != 0) whole_[tensor][which] = true;
      const bool holds = *word++ != 0;
      for (int axis = 0; axis < box.rank(); ++axis) {
        box[axis].begin = *word++;
        box[axis].end = *word++;
      }
      if (holds) parts[tensor][which] = box;
    }
  }
  parts_.push_back(std::move(parts));
}

}  // namespace cortado
