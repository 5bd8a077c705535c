#include "cortado/data/shapes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <numeric>

#include "cortado/base/random.h"
#include "cortado/data/shuffle.h"

namespace cortado {

namespace {

constexpr std::array<std::string_view, 12> names{"disc",     "square", "triangle",  "cross", "ring", "star",
                                                 "crescent", "heart",  "hourglass", "arrow", "T",    "H"};

struct Point {
  double x = 0, y = 0;
};
using Color = std::array<double, 3>;

Point direction(double angle) { return {std::cos(angle), std::sin(angle)}; }
double along(Point p, Point direction) { return p.x * direction.x + p.y * direction.y; }
double squared_length(Point p) { return p.x * p.x + p.y * p.y; }

// Outlines in the square [-1, 1]^2, y down; the others are curves (inside_shape).
std::vector<Point> regular_star() {
  std::vector<Point> outline;
  for (int i = 0; i < 10; ++i) {
    const double angle = std::numbers::pi * (i / 5.0 - 0.5), radius = i % 2 ? 0.42 : 1.05;
    outline.push_back({radius * std::cos(angle), radius * std::sin(angle)});
  }
  return outline;
}

const std::vector<Point>& outline_of(std::string_view name) {
  static const std::vector<Point> square{{-.8, -.8}, {.8, -.8}, {.8, .8}, {-.8, .8}};
  static const std::vector<Point> triangle{{0, -1}, {.95, .75}, {-.95, .75}};
  static const std::vector<Point> cross{{-.3, -1}, {.3, -1}, {.3, -.3}, {1, -.3}, {1, .3},   {.3, .3},
                                        {.3, 1},   {-.3, 1}, {-.3, .3}, {-1, .3}, {-1, -.3}, {-.3, -.3}};
  static const std::vector<Point> star = regular_star();
  static const std::vector<Point> hourglass{{-.85, -.9}, {.85, -.9}, {.1, 0},
                                            {.85, .9},   {-.85, .9}, {-.1, 0}};
  static const std::vector<Point> arrow{{0, -1},   {.8, -.1},   {.28, -.1}, {.28, 1},
                                        {-.28, 1}, {-.28, -.1}, {-.8, -.1}};
  static const std::vector<Point> letter_t{{-.9, -.9}, {.9, -.9},  {.9, -.4},   {.25, -.4},
                                           {.25, .9},  {-.25, .9}, {-.25, -.4}, {-.9, -.4}};
  static const std::vector<Point> letter_h{{-.85, -.9}, {-.35, -.9}, {-.35, -.25}, {.35, -.25},
                                           {.35, -.9},  {.85, -.9},  {.85, .9},    {.35, .9},
                                           {.35, .25},  {-.35, .25}, {-.35, .9},   {-.85, .9}};
  static const std::vector<Point> none;
  if (name == "square") return square;
  if (name == "triangle") return triangle;
  if (name == "cross") return cross;
  if (name == "star") return star;
  if (name == "hourglass") return hourglass;
  if (name == "arrow") return arrow;
  if (name == "T") return letter_t;
  if (name == "H") return letter_h;
  return none;
}

// Even-odd rule.
bool inside_outline(const std::vector<Point>& outline, Point p) {
  bool inside = false;
  for (size_t i = 0, j = outline.size() - 1; i < outline.size(); j = i++) {
    const Point a = outline[i], b = outline[j];
    if ((a.y > p.y) != (b.y > p.y) && p.x < a.x + (b.x - a.x) * (p.y - a.y) / (b.y - a.y)) inside = !inside;
  }
  return inside;
}

bool inside_shape(int label, const std::vector<Point>& outline, Point p) {
  if (!outline.empty()) return inside_outline(outline, p);
  const double squared = squared_length(p);
  if (names[label] == "disc") return squared < 0.9 * 0.9;
  if (names[label] == "ring") return squared < 0.95 * 0.95 && squared > 0.5 * 0.5;
  if (names[label] == "crescent")
    return squared < 0.95 * 0.95 && squared_length({p.x - 0.45, p.y}) > 0.8 * 0.8;
  // heart: (x^2 + y^2 - 1)^3 < x^2 y^3, upright and scaled to the square
  const double x = 1.2 * p.x, y = 0.15 - 1.2 * p.y, bulge = x * x + y * y - 1;
  return bulge * bulge * bulge < x * x * y * y * y;
}

// Successive draws for one image.
struct Draws {
  RandomStream stream;
  uint64_t index = 0;
  uint32_t next = 0;
  double between(double low, double high) { return stream.uniform(index, next++, low, high); }
  Color color() { return {between(20, 235), between(20, 235), between(20, 235)}; }
};

double distance(const Color& a, const Color& b) {
  return std::sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) +
                   (a[2] - b[2]) * (a[2] - b[2]));
}

// All that is random in one image except the noise, in units of the image's side.
struct Scene {
  int label = 0;
  Color foreground{}, ground_from{}, ground_to{};
  Point ground_direction;
  Point center;
  double radius = 0;
  Point turn;  // cosine and sine of its angle
  bool bar = false, blob = false;
  Color bar_color{}, blob_color{};
  Point bar_normal;
  double bar_offset = 0, bar_width = 0;
  Point blob_center;
  double blob_radius = 0;
  double noise = 0;  // standard deviation
};

Scene draw_scene(Draws draws, int label) {
  constexpr double least_contrast = 130;  // of at most 372
  Scene scene;
  scene.label = label;
  scene.ground_from = draws.color();
  scene.ground_to = draws.color();
  Color middle;
  for (int c = 0; c < 3; ++c) {
    scene.ground_to[c] = 0.5 * (scene.ground_from[c] + scene.ground_to[c]);
    middle[c] = 0.5 * (scene.ground_from[c] + scene.ground_to[c]);
  }
  do scene.foreground = draws.color();
  while (distance(scene.foreground, middle) < least_contrast);
  scene.ground_direction = direction(draws.between(0, 2 * std::numbers::pi));
  scene.radius = draws.between(0.29, 0.42);
  scene.center = {draws.between(scene.radius, 1 - scene.radius),
                  draws.between(scene.radius, 1 - scene.radius)};
  scene.turn = direction(draws.between(-0.3, 0.3));
  const double hidden = draws.between(0, 1);
  scene.bar = hidden < 0.2;
  scene.blob = hidden > 0.8;
  scene.bar_color = draws.color();
  scene.bar_normal = direction(draws.between(0, 2 * std::numbers::pi));
  scene.bar_offset = draws.between(-0.25, 0.25);
  scene.bar_width = draws.between(0.03, 0.08);
  scene.blob_color = draws.color();
  scene.blob_center = {draws.between(0, 1), draws.between(0, 1)};
  scene.blob_radius = draws.between(0.06, 0.13);
  scene.noise = draws.between(3, 10);
  return scene;
}

Color color_at(const Scene& scene, const std::vector<Point>& outline, Point p) {
  const Point middle{p.x - 0.5, p.y - 0.5};
  if (scene.bar && std::abs(along(middle, scene.bar_normal) - scene.bar_offset) < scene.bar_width)
    return scene.bar_color;
  if (scene.blob && squared_length({p.x - scene.blob_center.x, p.y - scene.blob_center.y}) <
                        scene.blob_radius * scene.blob_radius)
    return scene.blob_color;
  const Point q{(p.x - scene.center.x) / scene.radius, (p.y - scene.center.y) / scene.radius};
  const Point turned{along(q, scene.turn), q.y * scene.turn.x - q.x * scene.turn.y};
  if (squared_length(q) < 2 && inside_shape(scene.label, outline, turned)) return scene.foreground;
  const double shade = 0.5 + 0.7 * along(middle, scene.ground_direction);
  Color ground;
  for (int c = 0; c < 3; ++c)
    ground[c] = scene.ground_from[c] + shade * (scene.ground_to[c] - scene.ground_from[c]);
  return ground;
}

// About normal with deviation 1: the sum of a draw's four bytes, centred and scaled.
double noise_of(uint32_t bits) {
  const uint32_t sum = (bits & 0xFF) + (bits >> 8 & 0xFF) + (bits >> 16 & 0xFF) + (bits >> 24);
  return (sum - 510.0) / 147.8;
}

int label_of(const ShapesOptions& options, int64_t index) {
  const RandomStream stream{options.seed, 0, RandomStream::owner_of("shapes/labels")};
  return static_cast<int>(
      shuffled_order(stream, index / options.classes, options.classes)[index % options.classes]);
}

}  // namespace

std::span<const std::string_view> shape_names() { return names; }

void check_shapes_options(const ShapesOptions& options) {
  if (options.classes < 2 || options.classes > static_cast<int>(names.size()))
    throw UserError(
        fmt::format("{} classes of shapes are not available; choose 2 to {}", options.classes, names.size()));
  if (options.size < 16 || options.size > 512)
    throw UserError(fmt::format("a shape cannot be drawn on {0}x{0} pixels; choose 16 to 512", options.size));
}

LabelledImage draw_shape(const ShapesOptions& options, int64_t index) {
  constexpr int supersampling = 3;  // points a pixel and axis
  const RandomStream scenes{options.seed, 0, RandomStream::owner_of("shapes/scene")};
  const std::array<uint32_t, 2> noise_key{
      static_cast<uint32_t>(options.seed) ^ RandomStream::owner_of("shapes/noise"),
      static_cast<uint32_t>(options.seed >> 32)};
  const Scene scene = draw_scene({scenes, static_cast<uint64_t>(index)}, label_of(options, index));
  const std::vector<Point>& outline = outline_of(names[scene.label]);
  LabelledImage result{Image(options.size, options.size, 3), scene.label};
  for (int y = 0; y < options.size; ++y) {
    for (int x = 0; x < options.size; ++x) {
      Color sum{};
      for (int i = 0; i < supersampling * supersampling; ++i) {
        const double dx = (i % supersampling + 0.5) / supersampling,
                     dy = (i / supersampling + 0.5) / supersampling;
        const Color color = color_at(scene, outline, {(x + dx) / options.size, (y + dy) / options.size});
        for (int c = 0; c < 3; ++c) sum[c] += color[c];
      }
      const auto noise = philox({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32),
                                 static_cast<uint32_t>(y), static_cast<uint32_t>(x)},
                                noise_key);
      for (int c = 0; c < 3; ++c) {
        const double value = sum[c] / (supersampling * supersampling) + scene.noise * noise_of(noise[c]);
        result.image.row(y)[3 * x + c] = static_cast<uint8_t>(std::clamp(std::lround(value), 0l, 255l));
      }
    }
  }
  return result;
}

}  // namespace cortado
