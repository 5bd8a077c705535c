#include "cortado/report/curve.h"

#include <cmath>
#include <gtest/gtest.h>

#include "cortado/report/table.h"

namespace cortado {
namespace {

TEST(Curve, TicksAreRoundAndInside) {
  EXPECT_EQ(round_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(round_ticks(-0.1, 2.3, 5), (std::vector<double>{0, 0.5, 1, 1.5, 2}));
  EXPECT_EQ(round_ticks(0, 5000, 10).size(), 11u);
}

TEST(Curve, SmoothingKeepsLinesAndEnds) {
  std::vector<Curve::Point> line;
  for (int i = 0; i < 20; ++i) line.push_back({double(i), 3.0 * i});
  auto smooth = smoothed_points(line, 7);
  ASSERT_EQ(smooth.size(), line.size());
  for (int i = 0; i < 20; ++i) EXPECT_NEAR(smooth[i].y, 3.0 * i, 1e-12);
}

TEST(Curve, PictureIsSmallAndEscaped) {
  Curve curve{.name = "a<b & \"c\""};
  for (int i = 0; i < 1000000; ++i) curve.points.push_back({double(i), std::sin(i * 1e-4)});
  curve.points.push_back({1e6, NAN});
  std::string svg = curves_svg("t", "x", {{"y", {curve}}});
  EXPECT_LT(svg.size(), 200000u);
  EXPECT_NE(svg.find("a&lt;b &amp; &quot;c&quot;"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_NE(curves_svg("none", "x", {{"y", {Curve{}}}}).find("</svg>"), std::string::npos);
}

TEST(Curve, AxesOfOnePointStayOnItsSideOfZero) {
  const std::string svg = curves_svg("t", "x", {{"accuracy", {{.name = "test", .points = {{200, 0.1}}}}}});
  EXPECT_EQ(svg.find(">-"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">0.1<"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">200<"), std::string::npos) << svg;
}

TEST(Table, ColumnsAreAligned) {
  Table table({{"a", Table::Align::left}, {"b"}});
  table.add({"xyz", "1"});
  table.add({"x", "22"});
  EXPECT_EQ(table.text(), "a     b\n---  --\nxyz   1\nx    22\n");
  EXPECT_EQ(grouped(61100840), "61,100,840");
  EXPECT_EQ(grouped(-1000), "-1,000");
  EXPECT_EQ(grouped(12), "12");
}

}  // namespace
}  // namespace cortado
