#include "cortado/base/error.h"
#include "cortado/layers/axpy.h"
#include "cortado/layers/batch_reindex.h"
#include "cortado/layers/concat.h"
#include "cortado/layers/crop.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/filter.h"
#include "cortado/layers/flatten.h"
#include "cortado/layers/hdf5_output.h"
#include "cortado/layers/permute.h"
#include "cortado/layers/reduction.h"
#include "cortado/layers/reshape.h"
#include "cortado/layers/shuffle_channel.h"
#include "cortado/layers/silence.h"
#include "cortado/layers/slice.h"
#include "cortado/layers/split.h"
#include "cortado/layers/tile.h"
#include "cortado/net/caffe/conversions.h"
#include "cortado/net/caffe/options.h"

namespace cortado::from_caffe {
namespace {

EltwiseOptions::Operation eltwise_operation(caffe::EltwiseParameter::EltwiseOp operation) {
  switch (operation) {
    case caffe::EltwiseParameter::PROD:
      return EltwiseOptions::Operation::prod;
    case caffe::EltwiseParameter::SUM:
      return EltwiseOptions::Operation::sum;
    case caffe::EltwiseParameter::MAX:
      return EltwiseOptions::Operation::max;
  }
  throw InternalError("unknown eltwise operation");
}

ReductionOptions::Operation reduction_operation(caffe::ReductionParameter::ReductionOp operation) {
  switch (operation) {
    case caffe::ReductionParameter::SUM:
      return ReductionOptions::Operation::sum;
    case caffe::ReductionParameter::ASUM:
      return ReductionOptions::Operation::asum;
    case caffe::ReductionParameter::SUMSQ:
      return ReductionOptions::Operation::sumsq;
    case caffe::ReductionParameter::MEAN:
      return ReductionOptions::Operation::mean;
  }
  throw InternalError("unknown reduction operation");
}

LayerPtr concat(const caffe::LayerParameter& layer) {
  const caffe::ConcatParameter& p = layer.concat_param();
  return std::make_shared<Concat>(ConcatOptions{
      .axis = axis_or_older(p.has_axis(), p.axis(), p.has_concat_dim(), p.concat_dim(), "concat_dim")});
}

LayerPtr slice(const caffe::LayerParameter& layer) {
  const caffe::SliceParameter& p = layer.slice_param();
  SliceOptions options;
  options.axis = axis_or_older(p.has_axis(), p.axis(), p.has_slice_dim(), p.slice_dim(), "slice_dim");
  options.slice_points.assign(p.slice_point().begin(), p.slice_point().end());
  return std::make_shared<Slice>(std::move(options));
}

LayerPtr split(const caffe::LayerParameter&) { return std::make_shared<Split>(); }

LayerPtr eltwise(const caffe::LayerParameter& layer) {
  const caffe::EltwiseParameter& p = layer.eltwise_param();
  EltwiseOptions options;
  options.operation = eltwise_operation(p.operation());
  options.coeff.assign(p.coeff().begin(), p.coeff().end());
  options.stable_prod_grad = p.stable_prod_grad();
  return std::make_shared<Eltwise>(std::move(options));
}

LayerPtr axpy(const caffe::LayerParameter&) { return std::make_shared<Axpy>(); }

LayerPtr flatten(const caffe::LayerParameter& layer) {
  const caffe::FlattenParameter& p = layer.flatten_param();
  return std::make_shared<Flatten>(FlattenOptions{.axis = p.axis(), .end_axis = p.end_axis()});
}

LayerPtr reshape(const caffe::LayerParameter& layer) {
  const caffe::ReshapeParameter& p = layer.reshape_param();
  ReshapeOptions options;
  options.shape.assign(p.shape().dim().begin(), p.shape().dim().end());
  options.axis = p.axis();
  options.num_axes = p.num_axes();
  return std::make_shared<Reshape>(std::move(options));
}

LayerPtr crop(const caffe::LayerParameter& layer) {
  const caffe::CropParameter& p = layer.crop_param();
  CropOptions options;
  options.axis = p.axis();
  options.offset.assign(p.offset().begin(), p.offset().end());
  return std::make_shared<Crop>(std::move(options));
}

LayerPtr reduction(const caffe::LayerParameter& layer) {
  const caffe::ReductionParameter& p = layer.reduction_param();
  return std::make_shared<Reduction>(ReductionOptions{
      .operation = reduction_operation(p.operation()), .axis = p.axis(), .coeff = p.coeff()});
}

LayerPtr tile(const caffe::LayerParameter& layer) {
  const caffe::TileParameter& p = layer.tile_param();
  return std::make_shared<Tile>(TileOptions{.axis = p.axis(), .tiles = p.tiles()});
}

LayerPtr shuffle_channel(const caffe::LayerParameter& layer) {
  const int group = to_positive("group", layer.shuffle_channel_param().group());
  return std::make_shared<ShuffleChannel>(ShuffleChannelOptions{.group = group});
}

LayerPtr permute(const caffe::LayerParameter& layer) {
  PermuteOptions options;
  for (uint32_t axis : layer.permute_param().order()) options.order.push_back(axis);
  return std::make_shared<Permute>(std::move(options));
}

LayerPtr batch_reindex(const caffe::LayerParameter&) { return std::make_shared<BatchReindex>(); }

LayerPtr filter_samples(const caffe::LayerParameter& layer) {
  const int samples = to_int("filter_param.samples", layer.filter_param().samples());
  return std::make_shared<Filter>(FilterOptions{.samples = samples});
}

LayerPtr silence(const caffe::LayerParameter&) { return std::make_shared<Silence>(); }

LayerPtr hdf5_output(const caffe::LayerParameter& layer) {
  return std::make_shared<Hdf5Output>(Hdf5OutputOptions{.file_name = layer.hdf5_output_param().file_name()});
}

}  // namespace

std::span<const LayerType> shape_types() {
  static constexpr LayerType types[] = {
      {"Concat", concat},
      {"Slice", slice},
      {"Split", split},
      {"Eltwise", eltwise},
      {"Axpy", axpy},
      {"Flatten", flatten},
      {"Reshape", reshape},
      {"Crop", crop},
      {"Reduction", reduction},
      {"Tile", tile},
      {"ShuffleChannel", shuffle_channel},
      {"Permute", permute},
      {"BatchReindex", batch_reindex},
      {"Silence", silence},
      {"HDF5Output", hdf5_output},
      {"Filter", filter_samples},
      {"Python", nullptr,
       "its class computes it, which this program has not; run the net in Python, by cortado.caffe"},
  };
  return types;
}

}  // namespace cortado::from_caffe
