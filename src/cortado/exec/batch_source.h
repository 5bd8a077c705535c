#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace cortado {

// Brings in this rank's part (Program::samples) of the batches of a source layer: one pointer per top.
class BatchSource {
 public:
  using Tensors = std::vector<const float*>;
  // A batch that is there before it is asked for. Batches of equal numbers have equal values.
  struct Coming {
    Tensors tensors;
    int64_t number = 0;
  };
  using Next = std::function<Tensors()>;
  using Peek = std::function<std::optional<Coming>()>;

  BatchSource() = default;
  // `next`: the next batch, valid until the next call. `peek`: the one that `next` would bring now; nothing
  // where it is not there yet. Null: it never tells.
  template <typename Function>
  requires(!std::same_as<std::remove_cvref_t<Function>, BatchSource> &&
           std::constructible_from<Next, Function>) BatchSource(Function&& next, Peek peek = {})
      : next_(std::forward<Function>(next)), peek_(std::move(peek)) {}

  explicit operator bool() const { return static_cast<bool>(next_); }
  Tensors operator()() const { return next_(); }
  std::optional<Coming> peek() const { return peek_ ? peek_() : std::nullopt; }

 private:
  Next next_;
  Peek peek_;
};

}  // namespace cortado
