#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <fmt/core.h>
#include <functional>
#include <vector>

namespace cortado {

// A place in one kind of list. Each kind has a tag of its own, so that no index of another list, and no
// number, compiles in its stead: `using EntryIndex = TypedIndex<struct EntryTag>;`
template <class Tag>
class TypedIndex {
 public:
  constexpr TypedIndex() = default;  // nowhere
  template <std::integral Integer>
  constexpr explicit TypedIndex(Integer value) : value_(static_cast<int>(value)) {}

  constexpr int value() const { return value_; }  // -1: nowhere
  constexpr explicit operator bool() const { return value_ >= 0; }

  constexpr auto operator<=>(const TypedIndex&) const = default;
  constexpr TypedIndex& operator++() {
    ++value_;
    return *this;
  }
  constexpr TypedIndex& operator--() {
    --value_;
    return *this;
  }

 private:
  int value_ = -1;
};

// [begin, end), ascending, as a range.
template <class I>
class IndexRange {
 public:
  class Iterator {
   public:
    using value_type = I;
    using difference_type = std::ptrdiff_t;
    constexpr Iterator() = default;
    constexpr explicit Iterator(I at) : at_(at) {}
    constexpr I operator*() const { return at_; }
    constexpr Iterator& operator++() {
      ++at_;
      return *this;
    }
    constexpr Iterator operator++(int) {
      Iterator before = *this;
      ++at_;
      return before;
    }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    I at_;
  };

  constexpr IndexRange(I begin, I end) : begin_(begin), end_(end < begin ? begin : end) {}
  constexpr Iterator begin() const { return Iterator(begin_); }
  constexpr Iterator end() const { return Iterator(end_); }

 private:
  I begin_, end_;
};

// A vector that takes only indices of its own kind.
template <class I, class T>
class IndexedVector : private std::vector<T> {
  using Base = std::vector<T>;

 public:
  using typename Base::const_iterator;
  using typename Base::const_reference;
  using typename Base::iterator;
  using typename Base::reference;
  using typename Base::size_type;
  using typename Base::value_type;

  using Base::assign;
  using Base::back;
  using Base::Base;
  using Base::begin;
  using Base::clear;
  using Base::emplace_back;
  using Base::empty;
  using Base::end;
  using Base::erase;
  using Base::front;
  using Base::insert;
  using Base::push_back;
  using Base::resize;
  using Base::size;

  reference operator[](I index) { return Base::operator[](static_cast<size_t>(index.value())); }
  const_reference operator[](I index) const { return Base::operator[](static_cast<size_t>(index.value())); }

  const_reference at(I index) const { return Base::at(static_cast<size_t>(index.value())); }  // throws

  I end_index() const { return I(this->size()); }  // of the next element that is added
  template <class Predicate>
  friend void erase_if(IndexedVector& vector, Predicate predicate) {
    std::erase_if(static_cast<Base&>(vector), predicate);
  }
  friend bool operator==(const IndexedVector& one, const IndexedVector& other) {
    return static_cast<const Base&>(one) == static_cast<const Base&>(other);
  }
};

// Of all elements: `for (EntryIndex entry : indices(entries))`.
template <class I, class T>
IndexRange<I> indices(const IndexedVector<I, T>& vector) {
  return {I(0), vector.end_index()};
}

}  // namespace cortado

template <class Tag>
struct std::hash<cortado::TypedIndex<Tag>> {
  size_t operator()(cortado::TypedIndex<Tag> index) const noexcept { return std::hash<int>()(index.value()); }
};

template <class Tag>
struct fmt::formatter<cortado::TypedIndex<Tag>> : fmt::formatter<int> {
  auto format(cortado::TypedIndex<Tag> index, fmt::format_context& context) const {
    return fmt::formatter<int>::format(index.value(), context);
  }
};
