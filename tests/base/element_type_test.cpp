#include "cortado/base/element_type.h"

#include <gtest/gtest.h>

namespace cortado {
namespace {

TEST(ElementType, HasTheSizeOfItsNumbers) {
  EXPECT_EQ(size_of(ElementType::f32), static_cast<int64_t>(sizeof(float)));
  EXPECT_EQ(size_of(ElementType::f64), static_cast<int64_t>(sizeof(double)));
  EXPECT_EQ(size_of(ElementType::bf16), 2);
}

TEST(ElementType, IsFoundByItsNumbersAndFindsThem) {
  EXPECT_EQ(element_type_of<float>, ElementType::f32);
  EXPECT_EQ(element_type_of<double>, ElementType::f64);
  EXPECT_EQ(element_type_of<bf16>, ElementType::bf16);
  EXPECT_EQ(name_of(ElementType::f64), "f64");
  for (const ElementType type : {ElementType::f32, ElementType::f64, ElementType::bf16})
    EXPECT_EQ(with_element_type(type, []<typename E>() { return element_type_of<E>; }), type);
  EXPECT_THROW(size_of(static_cast<ElementType>(77)), InternalError);
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
