#include "cortado/data/volume_source.h"

#include <array>
#include <fmt/format.h>
#include <fstream>

#include "cortado/base/error.h"
#include "cortado/data/augment.h"
#include "cortado/data/shuffle.h"
#include "cortado/data/volume_file.h"

namespace cortado {

namespace {

constexpr int spatial_axes = 3;
constexpr std::string_view axis_names = "dhw";

struct ListedVolume {
  int line = 0;
  std::string volume, labels;  // paths
};

// A path of labels has no spaces, one of a volume may have.
std::vector<ListedVolume> read_volume_list(const std::string& path, bool labelled) {
  std::ifstream file(path);
  if (!file) throw UserError(fmt::format("cannot open the list of volumes {}; check `source`", path));
  std::vector<ListedVolume> volumes;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) continue;
    const size_t space = labelled ? line.find_last_of(" \t") : line.size();
    if (space == std::string::npos || line.find_last_not_of(" \t", space) == std::string::npos)
      throw UserError(
          fmt::format("{}:{}: expected \"VOLUME LABELS\", two paths, found \"{}\"", path, number, line));
    volumes.push_back({number, line.substr(0, line.find_last_not_of(" \t", space) + 1),
                       labelled ? line.substr(space + 1) : ""});
  }
  if (volumes.empty()) throw UserError(fmt::format("the list of volumes {} is empty", path));
  return volumes;
}

// Where a sample lies in a volume.
struct Placed {
  std::array<int64_t, spatial_axes> first{}, size{};  // the crop
  std::array<bool, spatial_axes> mirrored{};

  // The range of the volume in which a range of the sample lies.
  Range in_volume(int axis, Range range) const {
    if (mirrored[axis]) range = {size[axis] - range.end, size[axis] - range.begin};
    return {first[axis] + range.begin, first[axis] + range.end};
  }
  // The place in the sample of one in the volume.
  int64_t in_sample(int axis, int64_t at) const {
    at -= first[axis];
    return mirrored[axis] ? size[axis] - 1 - at : at;
  }
};

class VolumeSource : public SampleSource {
 public:
  VolumeSource(const SourceOptions& source, const ReaderOptions& options)
      : source_(source),
        stream_{options.seed, 0, RandomStream::owner_of(options.layer_name)},
        training_(options.phase == Phase::train),
        labelled_(options.tops > 1),
        volumes_(read_volume_list(source.source, labelled_)),
        order_(records(), [this](int64_t epoch) { return shuffled_order(stream_, epoch, records()); }) {
    if (options.tops < 1 || options.tops > 2)
      throw UserError(
          fmt::format("volumes give one or two tops, data and labels; there are {}", options.tops));
    if (source.batch_size < 1)
      throw UserError(fmt::format("batch_size is {}; it must be at least 1", source.batch_size));
    take_shape(VolumeFile(path_of(volumes_[0].volume), raw(false)));
    check_means();
    for (const Shape& shape : shapes()) {
      boxes_.push_back(Box::whole(shape));
      boxes_.back()[0] = {0, 1};
    }
  }

  std::vector<Shape> shapes() const override {
    std::vector<Shape> shapes{{source_.batch_size, channels_, size_[0], size_[1], size_[2]}};
    if (labelled_) shapes.push_back({source_.batch_size, 1, size_[0], size_[1], size_[2]});
    return shapes;
  }
  int64_t records() const override { return std::ssize(volumes_); }
  int64_t record_at(int64_t position) override {
    return source_.shuffle ? order_.at(position) : position % records();
  }
  std::string record_name(int64_t record) override {
    return fmt::format("{} line {}", source_.source, volumes_[record].line);
  }
  bool restrict_to(const std::vector<Box>& sample) override {
    boxes_ = sample;
    return true;
  }

  void load(int64_t record, int64_t position, std::span<float* const> tops) override {
    const ListedVolume& listed = volumes_[record];
    const VolumeFile volume(path_of(listed.volume), raw(false));
    check(volume, channels_);
    const Placed placed = place(volume.extents(), position);
    read(volume, boxes_[0], placed, true, tops[0]);
    if (!labelled_) return;
    const VolumeFile labels(path_of(listed.labels), raw(true));
    check(labels, 1);
    for (int axis = 1; axis <= spatial_axes; ++axis)
      if (labels.extents()[axis] != volume.extents()[axis])
        throw UserError(
            fmt::format("the labels of {} are {} (channels, depth, height, width), those of volume "
                        "{} {}; both must have the same space",
                        labels.path(), labels.extents().text(), volume.path(), volume.extents().text()));
    read(labels, boxes_[1], placed, false, tops[1]);
  }

 private:
  std::string path_of(const std::string& listed) const { return source_.root_folder + listed; }

  std::optional<VolumeFile::Raw> raw(bool labels) const {
    const VolumeOptions& options = source_.volumes;
    if (options.raw_extents.empty()) return std::nullopt;
    VolumeFile::Raw raw{.extents = Shape(options.raw_extents),
                        .element = labels ? options.raw_label_element : options.raw_element,
                        .offset = options.raw_offset};
    if (labels) raw.extents.set(0, 1);
    return raw;
  }

  void take_shape(const VolumeFile& first) {
    const std::vector<int64_t>& crop = source_.volumes.crop;
    channels_ = first.extents()[0];
    for (int axis = 0; axis < spatial_axes; ++axis)
      size_[axis] = crop.empty() ? first.extents()[axis + 1] : crop[axis];
    check(first, channels_);
  }

  void check(const VolumeFile& volume, int64_t channels) const {
    const bool crops = !source_.volumes.crop.empty();
    bool fits = volume.extents()[0] == channels;
    for (int axis = 0; axis < spatial_axes; ++axis) {
      const int64_t extent = volume.extents()[axis + 1];
      fits &= crops ? extent >= size_[axis] : extent == size_[axis];
    }
    if (!fits)
      throw UserError(
          fmt::format("{} is {} (channels, depth, height, width) where {}{} is needed; make all volumes "
                      "of one size, or set a crop that fits into each",
                      volume.path(), volume.extents().text(), crops ? "at least " : "",
                      Shape{channels, size_[0], size_[1], size_[2]}.text()));
  }

  void check_means() const {
    const auto means = std::ssize(source_.transform.mean_values);
    if (means > 1 && means != channels_)
      throw UserError(fmt::format("{} mean_value fields for volumes of {} channels; give one or {}", means,
                                  channels_, channels_));
  }

  // The same for volume and labels, and on all ranks.
  Placed place(const Shape& extents, int64_t position) const {
    const auto draw = [&](AugmentDraw first, int axis, int64_t count) {
      return random_below(stream_, static_cast<uint64_t>(position),
                          static_cast<uint32_t>(first) + static_cast<uint32_t>(axis), count);
    };
    Placed placed{.size = size_};
    for (int axis = 0; axis < spatial_axes; ++axis) {
      const int64_t spare = extents[axis + 1] - size_[axis];
      placed.first[axis] = training_ ? draw(AugmentDraw::volume_crop, axis, spare + 1) : spare / 2;
      placed.mirrored[axis] = training_ &&
                              source_.volumes.mirror.find(axis_names[axis]) != std::string::npos &&
                              draw(AugmentDraw::volume_mirror, axis, 2) == 1;
    }
    return placed;
  }

  // Writes a box of a sample, channels last.
  void read(const VolumeFile& file, const Box& box, const Placed& placed, bool normalized, float* to) const {
    if (box.empty()) return;
    Box in_file = Box::whole(file.extents());
    in_file[0] = box[1];
    for (int axis = 0; axis < spatial_axes; ++axis) in_file[axis + 1] = placed.in_volume(axis, box[axis + 2]);
    const Strides strides = channels_last_strides(box.shape());
    const int64_t step = placed.mirrored[2] ? -strides[4] : strides[4];
    const int64_t first_w = placed.in_sample(2, in_file[3].begin) - box[4].begin;
    file.read(in_file, [&](int64_t c, int64_t d, int64_t h, std::span<const float> values) {
      float* row = to + (c - box[1].begin) * strides[1] +
                   (placed.in_sample(0, d) - box[2].begin) * strides[2] +
                   (placed.in_sample(1, h) - box[3].begin) * strides[3] + first_w * strides[4];
      const float mean = normalized ? mean_of(c) : 0;
      const float scale = normalized ? static_cast<float>(source_.transform.scale) : 1;
      for (size_t i = 0; i < values.size(); ++i)
        row[static_cast<int64_t>(i) * step] = (values[i] - mean) * scale;
    });
  }

  float mean_of(int64_t channel) const {
    const std::vector<double>& means = source_.transform.mean_values;
    if (means.empty()) return 0;
    return static_cast<float>(means[means.size() == 1 ? 0 : static_cast<size_t>(channel)]);
  }

  SourceOptions source_;
  RandomStream stream_;
  bool training_, labelled_;
  std::vector<ListedVolume> volumes_;
  EpochOrder order_;
  int64_t channels_ = 0;
  std::array<int64_t, spatial_axes> size_{};  // of a sample
  std::vector<Box> boxes_;                    // per top, what is read of a sample
};

}  // namespace

std::unique_ptr<SampleSource> open_volume_list(const SourceOptions& source, const ReaderOptions& options) {
  return std::make_unique<VolumeSource>(source, options);
}

}  // namespace cortado
