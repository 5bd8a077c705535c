#include "cortado/base/element_type.h"

#include <gtest/gtest.h>

namespace cortado {
namespace {

TEST(ElementType, HasTheSizeOfItsNumbers) {
  EXPECT_EQ(size_of(ElementType::f32), static_cast<int64_t>(sizeof(float)));
  EXPECT_EQ(size_of(ElementType::f64), static_cast<int64_t>(sizeof(double)));
}

TEST(ElementType, GivesTheBytesOfAShapeAndBack) {
  for (const ElementType type : {ElementType::f32, ElementType::f64}) {
    const Shape shape{2, 3, 5, 7};
    EXPECT_EQ(bytes_of(shape, type).count, 210 * size_of(type)) << name_of(type);
    EXPECT_EQ(elements_in(bytes_of(shape, type), type), shape.size()) << name_of(type);
  }
}

}  // namespace
}  // namespace cortado
