#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "cortado/kernels/native/simd.h"

// Lines of a convolution of narrow groups. Vectors hold channels: `width` channels in and as many out are a
// group, 1 of a depthwise convolution, and a vector holds whole groups. Output i of a group is the sum over k
// in [0, width) of input i ^ k times weight [k][i]: a vector of pixels is multiplied by one of weights for
// each k.
namespace cortado::native {

// Calls body.template operator()<V>(c) over the channels [0, channels), multiples of `width`: by all lanes,
// and the rest by vectors of half the lanes and single ones or, of wider groups, group by group.
template <int width, typename Body>
inline void by_groups(int64_t channels, Body&& body) {
  if constexpr (width == 1) {
    by_lanes(0, channels, body);
  } else {
    int64_t c = 0;
    for (; c + lanes <= channels; c += lanes) body.template operator()<floats>(c);
    for (; c < channels; c += width) body.template operator()<VectorOf<float, width>>(c);
  }
}

// Calls body.template operator()<i>() for i in [begin, end).
template <int begin, int end, typename Body>
inline void for_each_member(Body&& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) { (body.template operator()<begin + i>(), ...); }
  (std::make_integer_sequence<int, end - begin>());
}

// Lane i holds what lane i ^ k of `value` does. Over k in [0, width) a lane meets all members of its group;
// for k = 0 nothing moves.
template <int k, typename V>
inline V exchanged(V value) {
  if constexpr (k == 0) {
    return value;
  } else {
    return [&]<int... lane>(std::integer_sequence<int, lane...>) {
      return __builtin_shufflevector(value, value, (lane ^ k)...);
    }
    (std::make_integer_sequence<int, lanes_of<V>>());
  }
}

// A line of targets, pixels of a row of windows or of the image, and the taps of the filter that they take:
// tap t of each of `rows` at target j meets pixel first + j * step + t * spread of the row's source, where it
// has one.
template <typename E, typename Weight, int width>
struct Line {
  struct Row {
    const E* source = nullptr;
    Weight* weights = nullptr;  // of tap 0, [k][channels]; their gradient: what it is added to
  };

  std::vector<Row> rows;
  int64_t taps = 0, weight_step = 0;  // of each row; from the weights of one to those of the next
  int64_t first = 0, step = 1, spread = 1;
  int64_t targets = 0, pixels = 0;  // of the line; of a row of the source
  int64_t channels = 0;

  int64_t pixel(int64_t target) const { return first + target * step; }
  bool has(int64_t pixel) const { return 0 <= pixel && pixel < pixels; }
  // Whether `count` targets take all taps.
  bool inside(int64_t target, int64_t count) const {
    return pixel(target) >= 0 && pixel(target + count - 1) + (taps - 1) * spread < pixels;
  }
};

// Calls work.template operator()<taps, step>(), the line's numbers where there is code for these, else 0s.
template <typename E, typename Weight, int width, typename Work>
void with_steps(const Line<E, Weight, width>& line, Work&& work) {
  if (line.spread == 1 && line.step == 1) {
    if (line.taps == 1) return work.template operator()<1, 1>();
    if (line.taps == 2) return work.template operator()<2, 1>();
    if (line.taps == 3) return work.template operator()<3, 1>();
  } else if (line.spread == 1 && line.step == 2) {
    if (line.taps == 3) return work.template operator()<3, 2>();
  }
  if constexpr (width == 1) {
    if (line.spread == 1 && line.taps == 5) {
      if (line.step == 1) return work.template operator()<5, 1>();
      if (line.step == 2) return work.template operator()<5, 2>();
    }
  }
  work.template operator()<0, 0>();
}

// Calls block.template operator()<count, taps, step, inside>(target, covered) for blocks of `count` targets
// that cover the line; the first `covered` of a block were in the one before it. `inside`: they take all
// taps.
template <typename E, typename Weight, int width, typename Block>
void cover(const Line<E, Weight, width>& line, Block&& block) {
  with_steps(line, [&]<int taps, int step>() {
    int64_t target = 0;
    const auto run_all = [&]<int count>() {
      while (target < line.targets && line.targets >= count) {
        const int64_t begin = std::min(target, line.targets - count), covered = target - begin;
        if (line.inside(begin, count)) {
          block.template operator()<count, taps, step, true>(begin, covered);
        } else {
          block.template operator()<count, taps, step, false>(begin, covered);
        }
        target = begin + count;
      }
    };
    run_all.template operator()<8>();
    run_all.template operator()<4>();
    run_all.template operator()<1>();
  });
}

// Vectors of `pixels` pixels of a row, from pixel `at` on, those of them that the row has.
template <typename V, typename E, int pixels, bool inside>
struct PixelRun {
  static constexpr int count = pixels;
  V values[pixels];
  int64_t at, of_row;

  template <typename Weight, int width>
  PixelRun(const Line<E, Weight, width>& line, int64_t at, const E* source) : at(at), of_row(line.pixels) {
#pragma GCC unroll 24
    for (int pixel = 0; pixel < pixels; ++pixel)
      values[pixel] = has(pixel) ? in_register(load<V>(source + (at + pixel) * line.channels)) : V{};
  }
  bool has(int pixel) const { return inside || (0 <= at + pixel && at + pixel < of_row); }
};

// Adds to the sums of `count` targets what the taps of a row add. `at`: the pixel of tap 0 of the first
// target.
template <int count, int taps, int step, bool inside, typename V, typename E, int width>
inline void add_taps(const Line<E, const float, width>& line, int64_t at, const E* source,
                     const float* weights, V (&sums)[count]) {
  if constexpr (taps > 0 && lanes_of<V> == lanes) {
    constexpr int part = std::min(width, 4);  // members whose factors fit the registers beside the sums
    for_each_member<0, width / part>([&]<int p>() {
      V factors[part][taps];
      for_each_member<0, part>([&]<int k>() {
#pragma GCC unroll 8
        for (int t = 0; t < taps; ++t)
          factors[k][t] =
              in_register(load<V>(weights + t * line.weight_step + (p * part + k) * line.channels));
      });
#pragma GCC unroll 24
      for (int pixel = 0; pixel < (count - 1) * step + taps; ++pixel) {
        if (!inside && !line.has(at + pixel)) continue;
        const V values = in_register(exchanged<p * part>(load<V>(source + (at + pixel) * line.channels)));
        for_each_member<0, part>([&]<int k>() {
          const V value = exchanged<k>(values);
#pragma GCC unroll 8
          for (int i = 0; i < count; ++i)
            if (pixel >= i * step && pixel < i * step + taps) sums[i] += factors[k][pixel - i * step] * value;
        });
      }
    });
  } else {
    for (int64_t t = 0; t < line.taps; ++t)
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) {
        const int64_t pixel = at + i * line.step + t * line.spread;
        if (!inside && !line.has(pixel)) continue;
        const V values = load<V>(source + pixel * line.channels);
        for_each_member<0, width>([&]<int k>() {
          sums[i] += load<V>(weights + t * line.weight_step + k * line.channels) * exchanged<k>(values);
        });
      }
  }
}

// Writes a line of targets, `stride` elements apart: each is its bias (null: 0) and what its taps add.
template <bool streaming, typename E, int width>
void write_line(const Line<E, const float, width>& line, const float* bias, E* target, int64_t stride) {
  cover(line, [&]<int count, int taps, int step, bool inside>(int64_t first, int64_t) {
    by_groups<width>(line.channels, [=, &line]<typename V>(int64_t c) {
      V sums[count];
      const V start = bias ? load<V>(bias + c) : V{};
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) sums[i] = start;
      for (const auto& row : line.rows)
        add_taps<count, taps, step, inside>(line, line.pixel(first), row.source + c, row.weights + c, sums);
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) store<streaming>(target + (first + i) * stride + c, sums[i]);
    });
  });
}

// Adds to the weights of a row's taps what `count` windows make of their gradient. `at`: the pixel of tap 0
// of the first window.
template <int count, int taps, int step, bool inside, typename V, typename E, int width>
inline void add_gradient(const Line<E, float, width>& line, int64_t at, const E* source,
                         const V (&factors)[count], float* weights) {
  const auto add = [&](int k, int64_t tap, V sum) {
    float* const to = weights + tap * line.weight_step + k * line.channels;
    store(to, load<V>(to) + sum);
  };
  if constexpr (taps > 0 && lanes_of<V> == lanes) {
    const PixelRun<V, E, (count - 1) * step + taps, inside> pixels(line, at, source);
    for_each_member<0, width>([&]<int k>() {
      V sums[taps] = {};
#pragma GCC unroll 24
      for (int pixel = 0; pixel < pixels.count; ++pixel) {
        if (!pixels.has(pixel)) continue;
        const V value = exchanged<k>(pixels.values[pixel]);
#pragma GCC unroll 8
        for (int i = 0; i < count; ++i)
          if (pixel >= i * step && pixel < i * step + taps) sums[pixel - i * step] += factors[i] * value;
      }
#pragma GCC unroll 8
      for (int t = 0; t < taps; ++t) add(k, t, sums[t]);
    });
  } else {
    for (int64_t t = 0; t < line.taps; ++t) {
      V sums[width] = {};
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i) {
        const int64_t pixel = at + i * line.step + t * line.spread;
        if (!inside && !line.has(pixel)) continue;
        const V values = load<V>(source + pixel * line.channels);
        for_each_member<0, width>([&]<int k>() { sums[k] += factors[i] * exchanged<k>(values); });
      }
      for_each_member<0, width>([&]<int k>() { add(k, t, sums[k]); });
    }
  }
}

// Adds to the weights of a line of windows what these make of their gradient.
template <typename E, int width>
void add_line(const Line<E, float, width>& line, const E* gradient) {
  cover(line, [&]<int count, int taps, int step, bool inside>(int64_t first, int64_t covered) {
    by_groups<width>(line.channels, [=, &line]<typename V>(int64_t c) {
      V factors[count];
#pragma GCC unroll 8
      for (int i = 0; i < count; ++i)
        factors[i] = i < covered ? V{} : in_register(load<V>(gradient + (first + i) * line.channels + c));
      for (const auto& row : line.rows)
        add_gradient<count, taps, step, inside>(line, line.pixel(first), row.source + c, factors,
                                                row.weights + c);
    });
  });
}

template <typename E>
void add_bias_line(int64_t windows, int64_t channels, const E* gradient, float* bias) {
  for (int64_t place = 0; place < windows; ++place)
    by_lanes(0, channels, [&]<typename V>(int64_t c) {
      store(bias + c, load<V>(bias + c) + load<V>(gradient + place * channels + c));
    });
}

}  // namespace cortado::native
