// Boxes copied and added on a device, by its kernel, against those of the host.
#include "cortado/exec/box_copy.h"

#include <gtest/gtest.h>
#include <random>

#include "cortado/base/bf16.h"
#include "cortado/device/memory.h"

#include "tests/exec/test_device.h"

namespace cortado {
namespace {

using Random = std::mt19937;

int64_t draw(Random& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

// A box that has `inner` and up to two more elements at each end of each axis.
Box around(const Box& inner, Random& random) {
  Box box = inner;
  for (int axis = 0; axis < inner.rank(); ++axis)
    box[axis] = {inner[axis].begin - draw(random, 0, 2), inner[axis].end + draw(random, 0, 2)};
  return box;
}

std::vector<std::byte> random_bytes(const TensorPart& part, Random& random) {
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_of(part.box.shape(), part.type).count));
  with_element_type(part.type, [&]<typename E>() {
    auto* elements = reinterpret_cast<E*>(bytes.data());
    for (int64_t i = 0; i < part.box.shape().size(); ++i) {
      const auto value = static_cast<float>(draw(random, -1000, 1000)) / 64;
      if constexpr (std::is_same_v<E, bf16>)
        elements[i] = to_bf16(value);
      else
        elements[i] = value;
    }
  });
  return bytes;
}

class Boxes : public ::testing::Test {
 protected:
  // The bytes of `to` after `use` on a device.
  template <typename Use>
  std::vector<std::byte> on_device(TensorPart from, std::vector<std::byte> source, TensorPart to,
                                   std::vector<std::byte> target, Use&& use) {
    device::DeviceRuntime& device = device_;
    const device::Memory there({std::ssize(source)}, device), result({std::ssize(target)}, device);
    device::Queue& queue = device.queue();
    queue.copy_in(there.data(), source.data(), there.size());
    queue.copy_in(result.data(), target.data(), result.size());
    from.memory = device.for_kernels(there.data());
    to.memory = device.for_kernels(result.data());
    use(queue, from, to);
    queue.copy_out(target.data(), result.data(), result.size());
    queue.finish();
    return target;
  }

  const testing::TestDevice device_{true};
};

TEST_F(Boxes, OfRandomPartsAndTypesAreThoseOfTheHost) {
  Random random(1);
  for (int number = 0; number < 200; ++number) {
    const int rank = static_cast<int>(draw(random, 1, 5));
    std::vector<Range> ranges;
    for (int axis = 0; axis < rank; ++axis) {
      const int64_t begin = draw(random, 2, 5);
      ranges.push_back({begin, begin + draw(random, 1, 4)});
    }
    Box box = Box::whole(Shape(std::vector<int64_t>(static_cast<size_t>(rank), 1)));
    for (int axis = 0; axis < rank; ++axis) box[axis] = ranges[static_cast<size_t>(axis)];
    const ElementType types[] = {ElementType::f32, ElementType::bf16, ElementType::f64};
    TensorPart from{around(box, random), nullptr, types[draw(random, 0, 2)]};
    TensorPart to{around(box, random), nullptr, types[draw(random, 0, 2)]};
    std::vector<std::byte> source = random_bytes(from, random), target = random_bytes(to, random);
    for (const bool adds : {false, true}) {
      const std::vector<std::byte> actual =
          on_device(from, source, to, target, [&](auto& queue, const auto& here, const auto& there) {
            adds ? launch_add(queue, here, there, box) : launch_copy(queue, here, there, box);
          });
      std::vector<std::byte> expected = target;
      TensorPart host_from = from, host_to = to;
      host_from.memory = source.data(), host_to.memory = expected.data();
      adds ? add_box(host_from, host_to, box) : copy_box(host_from, host_to, box);
      EXPECT_EQ(actual, expected) << number << (adds ? " adds " : " copies ") << box.shape().text();
    }
  }
}

TEST_F(Boxes, AreZeroed) {
  Random random(2);
  const TensorPart part{Box::whole(Shape{3, 5}), nullptr, ElementType::bf16};
  const std::vector<std::byte> bytes = random_bytes(part, random);
  EXPECT_EQ(on_device(part, bytes, part, bytes,
                      [](auto& queue, const auto&, const auto& there) { launch_zero(queue, there); }),
            std::vector<std::byte>(bytes.size()));
}

}  // namespace
}  // namespace cortado
