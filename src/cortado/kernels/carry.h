#pragma once

namespace cortado {

// y; not a number where x is infinite or not a number. What is not finite in an input of a kernel is not
// finite in what it is computed to either (docs/explanation/finite.md), also where the function has a finite
// value there, as a sigmoid at infinity, or another element wins, as in a maximum.
template <typename Value>
inline Value carry(Value y, Value x) {
  return y + x * 0;
}

}  // namespace cortado
