#include <algorithm>
#include <fmt/format.h>

#include "cortado/report/layered_graph.h"
#include "cortado/report/name_lines.h"
#include "cortado/report/plan_page_parts.h"

namespace cortado {
namespace {

// Lengths in the picture's own units, which are about pixels.
constexpr double picture_width = 340, box_height = 36, between_rows = 14, margin = 14, side = 4, between = 4,
                 padding = 2.5, most_width = 184;
constexpr double name_size = 9.5, cut_size = 11, line_height = 11.5;  // of texts
constexpr size_t most_lines = 3;                                      // of a name

// About how wide a letter is, of its size.
constexpr double letter = 0.58;

size_t letters_within(double width, double size) {
  return static_cast<size_t>(std::max(3.0, width / (letter * size)));
}

// The width of the picture, of 1, that a name needs.
double least_width(const std::string& name) {
  constexpr size_t fewest = 6, most = 16;  // letters; a longer name shows its end
  size_t letters = fewest;
  while (letters < most && name_lines(name, letters, most_lines + 1).size() > most_lines) ++letters;
  const double width = static_cast<double>(letters) * letter * name_size + 2 * padding + between + 0.1;
  return width / (picture_width - 2 * side);
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
    std::vector<double> least;
    for (size_t u = 0; u < page.units.size(); ++u) least.push_back(least_width(first_name(u)));
    constexpr int most_rows = 16, beside = 3;
    graph_ = layered(static_cast<int>(page.units.size()), edges_, most_rows, beside, least);
    place_rows();
  }

  std::string pictures() const {
    std::string text;
    for (size_t p = 0; p < graph_.pieces.size(); ++p) text += picture(p);
    return text;
  }

 private:
  // Gives each row the height that the longest of its names needs.
  void place_rows() {
    std::vector<size_t> lines(static_cast<size_t>(graph_.rows), 1);
    for (const LayeredGraph::Item& each : graph_.items) {
      size_t& most = lines[static_cast<size_t>(each.row)];
      if (each.vertex >= 0) most = std::max(most, name_of_box(each).size());
    }
    double top = 0;
    for (size_t of_row : lines) {
      rows_.push_back({top, box_height + line_height * static_cast<double>(of_row - 1)});
      top += rows_.back().height + between_rows;
    }
  }

  const std::string& first_name(size_t unit) const {
    const plan::PlannedGroup& group = page_.plan().groups[page_.units[unit].groups[0]];
    return page_.report.network.nodes()[group.nodes[0]].name;
  }
  std::vector<std::string> name_of_box(const LayeredGraph::Item& of) const {
    const size_t letters = letters_within(width(of) - 2 * padding, name_size);
    return name_lines(first_name(static_cast<size_t>(of.vertex)), letters, most_lines);
  }

  const LayeredGraph::Item& item(int index) const { return graph_.items[static_cast<size_t>(index)]; }
  double x(const LayeredGraph::Item& of) const { return side + of.centre * (picture_width - 2 * side); }
  double width(const LayeredGraph::Item& of) const {
    return std::min(of.width * (picture_width - 2 * side) - between, most_width);
  }
  struct Row {
    double top, height;  // with no piece above it
    double bottom() const { return top + height; }
  };
  const Row& row(int index) const { return rows_[static_cast<size_t>(index)]; }

  std::string picture(size_t p) const {
    const auto [first, last] = graph_.pieces[p];
    const double shift = margin - row(first).top, height = row(last - 1).bottom() + shift + margin;
    std::string lines, boxes;
    for (const auto& link : graph_.links) lines += line(link, first, last, height);
    for (const auto& each : graph_.items) {
      if (each.row < first || each.row >= last) continue;
      if (each.vertex >= 0) {
        boxes += box(each, row(each.row).top + shift);
      } else {
        lines += fmt::format("<path class=\"edge\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/>", x(each),
                             row(each.row).top + shift, row(each.row).bottom() + shift);
      }
    }
    const std::string which =
        graph_.pieces.size() == 1 ? "" : fmt::format(", part {} of {}", p + 1, graph_.pieces.size());
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
        "aria-label=\"The network{}\">{}{}</svg>\n",
        picture_width, height, which, lines, boxes);
  }

  // Draws a link from the box above to the box below, or as far as the piece goes.
  std::string line(const LayeredGraph::Link& link, int first, int last, double height) const {
    const auto &from = item(link.from), &to = item(link.to);
    const bool begins = from.row >= first && from.row < last, ends = to.row >= first && to.row < last;
    if (!begins && !ends) return "";
    const bool moves = std::ranges::any_of(
        link.edges, [&](int edge) { return bytes_[static_cast<size_t>(edge)].count > 0; });
    const double x1 = begins ? x(from) : x(to), x2 = ends ? x(to) : x(from);
    const double shift = margin - row(first).top;
    const double y1 = begins ? row(from.row).bottom() + shift : 0;
    const double y2 = ends ? row(to.row).top + shift : height;
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
    const double wide = width(at), high = row(at.row).height;
    return fmt::format(
        "<a href=\"#layer-{}\" class=\"{}{}\"><title>{}: {}, {} ms</title>"
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"5\"/>{}</a>",
        unit.groups[0], page_.colours.css_class(config.degrees), idle ? " idle" : "", page_.name(unit),
        config.text(), short_milliseconds(seconds), x(at) - wide / 2, top, wide, high,
        texts(at, config, top));
  }

  // The name and the cut, in the middle of the box's height.
  std::string texts(const LayeredGraph::Item& at, const ParallelConfig& config, double top) const {
    const std::vector<std::string> name = name_of_box(at);
    const double room = width(at) - 2 * padding;
    const double spare = row(at.row).height - box_height - line_height * static_cast<double>(name.size() - 1);
    double y = top + spare / 2 + 14.5;
    std::string text;
    for (size_t i = 0; i < name.size(); ++i, y += line_height)
      text +=
          fmt::format("<text class=\"of\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x(at), y, escaped(name[i]));
    std::string cut = config.text(), squeeze;
    const size_t fit = letters_within(room, cut_size);
    if (cut.size() > fit) cut = config.degrees.text();
    if (cut.size() > fit)
      squeeze = fmt::format(" textLength=\"{:.0f}\" lengthAdjust=\"spacingAndGlyphs\"", room);
    return text + fmt::format("<text class=\"cut\" x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>", x(at),
                              y + 14.5 - line_height, squeeze, cut);
  }

  const PlanPage& page_;
  std::vector<std::pair<int, int>> edges_;
  std::vector<Bytes> bytes_;
  LayeredGraph graph_;
  std::vector<Row> rows_;
};

// "samples in 2, output channels in 2"
std::string words_of(const Degrees& degrees) {
  const std::pair<int, const char*> all[] = {{degrees.n, "samples"}, {degrees.c, "output channels"},
                                             {degrees.d, "depth"},   {degrees.h, "rows"},
                                             {degrees.w, "columns"}, {degrees.r, "input channels"}};
  std::string text;
  for (const auto& [parts, what] : all)
    if (parts > 1) text += fmt::format("{}{} in {}", text.empty() ? "" : ", ", what, parts);
  return text;
}

std::string configs_legend(const PlanPage& page) {
  std::string text = "<ul class=\"legend configs\">\n";
  for (const ConfigColours::Use& use : page.colours.uses()) {
    const bool cut = use.degrees.product() > 1;
    text += fmt::format("<li><i class=\"swatch {}\"></i><span><b>{}</b> {}: {} {}, {} ms</span></li>\n",
                        use.css_class, use.degrees.text(), cut ? words_of(use.degrees) : "not cut",
                        use.layers, use.layers == 1 ? "layer" : "layers", short_milliseconds(use.seconds));
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
         "kernel, coloured by how it is cut. A cut names what is cut and into how many parts: <b>n</b> the "
         "samples of a batch, <b>c</b> output channels, <b>h w d</b> rows, columns and depth, <b>r</b> input "
         "channels, whose results are summed. <b>n2 c2 on 0-3</b> is two by two parts on devices 0 to "
         "3.</p>\n" +
         configs_legend(page) + "<div class=\"pieces\">\n" + Drawing(page).pictures() +
         "</div>\n</section>\n";
}

}  // namespace cortado
