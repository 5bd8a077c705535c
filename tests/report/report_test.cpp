#include <gtest/gtest.h>
#include <random>
#include <set>

#include "cortado/report/config_colours.h"
#include "cortado/report/layered_graph.h"
#include "cortado/report/markup.h"
#include "cortado/report/name_lines.h"
#include "cortado/report/page.h"
#include "cortado/report/plan_report.h"

namespace cortado {
namespace {

TEST(Markup, EscapesWhatMarkupMeansAndWhatXmlCannotHold) {
  EXPECT_EQ(escaped("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(escaped("gr\u00fc\u00df \u2014 \U0001f375"), "gr\u00fc\u00df \u2014 \U0001f375");
  EXPECT_EQ(escaped(std::string_view("a\0b\x01\n", 5)), "a?b?\n");
  EXPECT_EQ(escaped("\xff\xc3(\xe2\x82"), std::string("??") + "(??");  // no UTF-8
  EXPECT_EQ(escaped("\xc0\xaf"), "??");                                // longer than need be
  EXPECT_EQ(escaped("\xed\xa0\x80 \xef\xbf\xbf"), "??? ???");          // a surrogate, no character
}

TEST(Page, SaysWhereItComesFrom) {
  const PageOrigin origin{"1.2.3 (ab<c)", "2017-04-01 12:34 UTC", "cortado plan --model 'a & b' --out <c>"};
  EXPECT_EQ(
      page_foot("<p>So it is.</p>\n", origin),
      "<footer>\n<p>So it is.</p>\n<p class=\"origin\">Made 2017-04-01 12:34 UTC by Cortado 1.2.3 (ab&lt;c): "
      "<code>cortado plan --model &#39;a &amp; b&#39; --out "
      "&lt;c&gt;</code></p>\n</footer>\n</body>\n</html>\n");
  EXPECT_EQ(page_title("a<b", "Use \"c\"."), "<h1>a&lt;b</h1>\n<p class=\"advice\">Use &quot;c&quot;.</p>\n");
}

using Lines = std::vector<std::string>;

TEST(NameLines, BreaksWhereANameMayBreakAndKeepsItsEnd) {
  EXPECT_EQ(name_lines("conv1", 12, 3), (Lines{"conv1"}));
  EXPECT_EQ(name_lines("inception_3a/3x3_reduce", 13, 3), (Lines{"inception_3a/", "3x3_reduce"}));
  EXPECT_EQ(name_lines("mixed_5c_5x5_1", 13, 3), (Lines{"mixed_", "5c_5x5_1"}));  // evenly
  EXPECT_EQ(name_lines("inception_4e/5x5_reduce", 10, 3), (Lines{"inception_", "4e/5x5_", "reduce"}));
  EXPECT_EQ(name_lines("one/two/three/four", 6, 2), (Lines{"\u2026hree/", "four"}));
  EXPECT_EQ(name_lines("abcdefghijkl", 5, 1), (Lines{"\u2026kl"}));
  EXPECT_EQ(name_lines("\u00e9\u00e9\u00e9\u00e9\u00e9", 3, 2),
            (Lines{"\u00e9\u00e9\u00e9", "\u00e9\u00e9"}));
  EXPECT_EQ(name_lines("", 5, 1), Lines{});
}

using Edges = std::vector<std::pair<int, int>>;

// Every edge is a path of links from row to row, and nothing lies outside.
void check(int vertices, const Edges& edges, const LayeredGraph& graph) {
  std::vector<int> row_of(static_cast<size_t>(vertices), -1);
  for (size_t i = 0; i < graph.items.size(); ++i) {
    const LayeredGraph::Item& item = graph.items[i];
    EXPECT_GE(item.centre - item.width / 2, -1e-9);
    EXPECT_LE(item.centre + item.width / 2, 1 + 1e-9);
    if (item.vertex >= 0) row_of[static_cast<size_t>(item.vertex)] = item.row;
    for (size_t j = 0; j < i; ++j) {  // boxes do not overlap
      const LayeredGraph::Item& other = graph.items[j];
      if (other.row != item.row) continue;
      EXPECT_GE(std::abs(other.centre - item.centre), (other.width + item.width) / 2 - 1e-9);
    }
  }
  std::vector<int> links_of(edges.size());
  for (const LayeredGraph::Link& link : graph.links) {
    EXPECT_EQ(graph.items[static_cast<size_t>(link.from)].row + 1,
              graph.items[static_cast<size_t>(link.to)].row);
    for (int edge : link.edges) ++links_of[static_cast<size_t>(edge)];
  }
  for (size_t e = 0; e < edges.size(); ++e)
    EXPECT_EQ(links_of[e],
              row_of[static_cast<size_t>(edges[e].second)] - row_of[static_cast<size_t>(edges[e].first)]);
  int next = 0;
  for (const auto& [first, last] : graph.pieces) {
    EXPECT_EQ(first, next);
    EXPECT_LT(first, last);
    next = last;
  }
  EXPECT_EQ(next, graph.rows);
}

TEST(LayeredGraph, HoldsOnRandomGraphs) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    const int vertices = std::uniform_int_distribution<int>(1, 60)(random);
    Edges edges;
    for (int v = 1; v < vertices; ++v) {
      for (int inputs = std::uniform_int_distribution<int>(0, 3)(random); inputs > 0; --inputs)
        edges.push_back({std::uniform_int_distribution<int>(std::max(0, v - 9), v - 1)(random), v});
    }
    SCOPED_TRACE(round);
    check(vertices, edges, layered(vertices, edges, 12));
  }
}

TEST(LayeredGraph, GivesRoomToThoseWhoAskForMore) {
  // 0 above 1, 2 and 3, which stand side by side above 4; an edge passes them.
  const Edges edges{{0, 1}, {0, 2}, {0, 3}, {1, 4}, {2, 4}, {3, 4}, {0, 4}};
  const std::vector<double> little(5, 0.2);
  EXPECT_NEAR(layered(5, edges, 9, 1, little).items[2].width, 0.25, 1e-9) << "room enough for all alike";
  const LayeredGraph graph = layered(5, edges, 9, 1, {0.2, 0.2, 0.45, 0.2, 0.2});
  check(5, edges, graph);
  EXPECT_GE(graph.items[2].width, 0.45);
  EXPECT_GE(graph.items[1].width, 0.2);
  check(5, edges, layered(5, edges, 9, 1, {1, 1, 1, 1, 1}));
}

TEST(LayeredGraph, CutsChainsIntoEqualPiecesAndModulesBetweenThem) {
  Edges chain;
  for (int v = 1; v < 40; ++v) chain.push_back({v - 1, v});
  EXPECT_EQ(layered(40, chain, 10).pieces, (Edges{{0, 10}, {10, 20}, {20, 30}, {30, 40}}));
  // Modules of five rows: a fork, two branches of three, a join. Cuts come after joins.
  Edges modules;
  int v = 0;
  for (int module = 0; module < 8; ++module, v += 7) {
    for (int branch : {1, 4}) {
      modules.push_back({v, v + branch});
      modules.push_back({v + branch, v + branch + 1});
      modules.push_back({v + branch + 1, v + branch + 2});
      modules.push_back({v + branch + 2, v + 7});
    }
  }
  for (const auto& [first, last] : layered(v + 1, modules, 10).pieces)
    EXPECT_TRUE(first % 4 == 1 || first == 0) << first << " to " << last;
}

TEST(ConfigColours, DifferentCutsHaveDifferentColours) {
  plan::Assignment plan;
  for (const Degrees& degrees :
       {Degrees{}, Degrees{.n = 4}, Degrees{.n = 2}, Degrees{.c = 4}, Degrees{.h = 2, .w = 2},
        Degrees{.n = 2, .c = 2}, Degrees{.r = 4}, Degrees{.n = 4}}) {
    plan.groups.push_back({});
    plan.groups.back().strategy.config.degrees = degrees;
    plan.groups.back().update = {1};
  }
  const ConfigColours colours(plan);
  ASSERT_EQ(colours.uses().size(), 7u);
  EXPECT_EQ(colours.uses()[0].degrees, (Degrees{.n = 4}));
  EXPECT_EQ(colours.uses()[0].layers, 2);
  std::set<std::string> fills;
  const std::string style = colours.style();
  for (size_t at = style.find("--fill:"); at != std::string::npos; at = style.find("--fill:", at + 1))
    fills.insert(style.substr(at, 14));
  EXPECT_EQ(fills.size(), 14u) << "light and dark ones";
}

TEST(PlanReport, WritesLargeGapsAsWholePercents) {
  EXPECT_EQ(percent_above({1.0123}, {1}), "1.2 %");
  EXPECT_EQ(percent_above({1.994}, {1}), "99 %");
  EXPECT_EQ(percent_above({2.0}, {1}), "100 %");
  EXPECT_EQ(percent_above({3.4}, {1}), "240 %");
}

}  // namespace
}  // namespace cortado
