#include <algorithm>
#include <fmt/format.h>

#include "cortado/report/layered_graph.h"
#include "cortado/report/plan_page_parts.h"

namespace cortado {
namespace {

// In the picture's own units, which are about pixels.
constexpr double picture_width = 340, row_height = 50, box_height = 36, margin = 14, side = 5,
                 most_width = 184;

// About how wide a text is.
double text_width(std::string_view text, double size) {
  return 0.58 * size * static_cast<double>(text.size());
}

// The end of a name tells it from its neighbours.
std::string shortened(const std::string& name, double width, double size) {
  const auto most = static_cast<size_t>(std::max(3.0, width / (0.58 * size)));
  if (name.size() <= most) return name;
  size_t begin = name.size() - (most - 1);
  while (begin < name.size() && (static_cast<unsigned char>(name[begin]) & 0xc0) == 0x80) ++begin;
  return "\u2026" + name.substr(begin);
}

class Drawing {
 public:
  explicit Drawing(const PlanPage& page) : page_(page) {
    const auto& groups = page.plan().groups;
    std::vector<int> unit_of(groups.size());
    for (size_t u = 0; u < page.units.size(); ++u)
      for (size_t g : page.units[u].groups) unit_of[g] = static_cast<int>(u);
    for (size_t to = 0; to < groups.size(); ++to) {
      for (const auto& input : groups[to].inputs) {
        const int from = unit_of[static_cast<size_t>(input.from)];
        if (from == unit_of[to]) continue;
        edges_.push_back({from, unit_of[to]});
        bytes_.push_back(input.bytes);
      }
    }
    constexpr int most_rows = 16, beside = 3;
    graph_ = layered(static_cast<int>(page.units.size()), edges_, most_rows, beside);
  }

  std::string pictures() const {
    std::string text;
    for (size_t p = 0; p < graph_.pieces.size(); ++p) text += picture(p);
    return text;
  }

 private:
  const LayeredGraph::Item& item(int index) const { return graph_.items[static_cast<size_t>(index)]; }
  double x(const LayeredGraph::Item& of) const { return side + of.centre * (picture_width - 2 * side); }
  double width(const LayeredGraph::Item& of) const {
    return std::min(of.width * (picture_width - 2 * side) - 6, most_width);
  }

  std::string picture(size_t p) const {
    const auto [first, last] = graph_.pieces[p];
    const double height = 2 * margin + (last - first) * row_height - (row_height - box_height);
    std::string lines, boxes;
    for (const auto& link : graph_.links) lines += line(link, first, last, height);
    for (const auto& each : graph_.items) {
      if (each.row < first || each.row >= last) continue;
      const double top = margin + (each.row - first) * row_height;
      if (each.vertex >= 0) {
        boxes += box(each, top);
      } else {
        lines += fmt::format("<path class=\"edge\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/>", x(each), top,
                             top + box_height);
      }
    }
    const std::string which =
        graph_.pieces.size() == 1 ? "" : fmt::format(", part {} of {}", p + 1, graph_.pieces.size());
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
        "aria-label=\"The network{}\">{}{}</svg>\n",
        picture_width, height, which, lines, boxes);
  }

  // From the box above to the box below, or as far as the piece goes.
  std::string line(const LayeredGraph::Link& link, int first, int last, double height) const {
    const auto &from = item(link.from), &to = item(link.to);
    const bool begins = from.row >= first && from.row < last, ends = to.row >= first && to.row < last;
    if (!begins && !ends) return "";
    const bool moves =
        std::ranges::any_of(link.edges, [&](int edge) { return bytes_[static_cast<size_t>(edge)] > 0; });
    const double x1 = begins ? x(from) : x(to), x2 = ends ? x(to) : x(from);
    const double y1 = begins ? margin + (from.row - first) * row_height + box_height : 0;
    const double y2 = ends ? margin + (to.row - first) * row_height : height;
    return fmt::format(
        "<path class=\"edge{0}\" d=\"M{1:.1f} {2:.1f}C{1:.1f} {4:.1f} {3:.1f} {4:.1f} {3:.1f} "
        "{5:.1f}\"/>",
        moves ? " moves" : "", x1, y1, x2, (y1 + y2) / 2, y2);
  }

  std::string box(const LayeredGraph::Item& at, double top) const {
    const PageUnit& unit = page_.units[static_cast<size_t>(at.vertex)];
    const plan::PlannedGroup& group = page_.plan().groups[unit.groups[0]];
    Seconds seconds;
    for (size_t g : unit.groups) seconds += page_.plan().groups[g].total();
    const ParallelConfig& config = group.strategy.config;
    const bool idle = static_cast<int>(config.devices.size()) < page_.report.machine.devices();
    const double wide = width(at), inner = wide - 6;
    const std::string& first = page_.report.network.nodes()[group.nodes[0]].name;
    const std::string name = shortened(first, inner, 9.5);
    std::string cut = config.text();
    if (text_width(cut, 11) > inner) cut = config.degrees.text();
    std::string squeeze;
    if (text_width(cut, 11) > inner)
      squeeze = fmt::format(" textLength=\"{:.0f}\" lengthAdjust=\"spacingAndGlyphs\"", inner);
    return fmt::format(
        "<a href=\"#layer-{}\" class=\"{}{}\"><title>{}: {}, {} ms</title>"
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" rx=\"5\"/>"
        "<text class=\"of\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>"
        "<text class=\"cut\" x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text></a>",
        unit.groups[0], page_.colours.css_class(config.degrees), idle ? " idle" : "", page_.name(unit),
        config.text(), short_milliseconds(seconds), x(at) - wide / 2, top, wide, box_height, x(at),
        top + 14.5, escaped(name), x(at), top + 29, squeeze, cut);
  }

  const PlanPage& page_;
  std::vector<std::pair<int, int>> edges_;
  std::vector<int64_t> bytes_;
  LayeredGraph graph_;
};

std::string legend(const PlanPage& page) {
  std::string text = "<ul class=\"legend configs\">\n";
  for (const ConfigColours::Use& use : page.colours.uses()) {
    text += fmt::format("<li><i class=\"swatch {}\"></i><b>{}</b> {} {}, {} ms</li>\n", use.css_class,
                        use.degrees.product() == 1 ? "not cut" : use.degrees.text(), use.layers,
                        use.layers == 1 ? "layer" : "layers", short_milliseconds(use.seconds));
  }
  const bool idle = std::ranges::any_of(page.plan().groups, [&](const plan::PlannedGroup& group) {
    return static_cast<int>(group.strategy.config.devices.size()) < page.report.machine.devices();
  });
  if (idle) text += "<li><i class=\"swatch idle\"></i>dashed: some devices are idle</li>\n";
  return text +
         "<li><i class=\"line moves\"></i>the tensor moves between devices</li>"
         "<li><i class=\"line\"></i>it stays where it is</li></ul>\n";
}

}  // namespace

std::string graph_part(const PlanPage& page) {
  return "<section id=\"network\">\n<h2>The network</h2>\n<p>Each box is a layer, with those that run in its "
         "kernel, coloured by how it is cut: <b>n</b> by samples, <b>c</b> by output channels, <b>h w d</b> "
         "by "
         "rows, columns and depth, <b>r</b> by the channels that are summed; the number says into how many "
         "parts.</p>\n" +
         legend(page) + "<div class=\"pieces\">\n" + Drawing(page).pictures() + "</div>\n</section>\n";
}

}  // namespace cortado
