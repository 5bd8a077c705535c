#include "cortado/kernels/reference/reference.h"

#include <fmt/format.h>
#include <typeinfo>

#include "cortado/base/error.h"
#include "cortado/layers/accuracy.h"
#include "cortado/layers/arg_max.h"
#include "cortado/layers/axpy.h"
#include "cortado/layers/batch_norm.h"
#include "cortado/layers/batch_reindex.h"
#include "cortado/layers/bias.h"
#include "cortado/layers/concat.h"
#include "cortado/layers/contrastive_loss.h"
#include "cortado/layers/crop.h"
#include "cortado/layers/deconvolution.h"
#include "cortado/layers/dropout.h"
#include "cortado/layers/eltwise.h"
#include "cortado/layers/embed.h"
#include "cortado/layers/euclidean_loss.h"
#include "cortado/layers/flatten.h"
#include "cortado/layers/hdf5_output.h"
#include "cortado/layers/hinge_loss.h"
#include "cortado/layers/im2col.h"
#include "cortado/layers/infogain_loss.h"
#include "cortado/layers/inner_product.h"
#include "cortado/layers/lrn.h"
#include "cortado/layers/multinomial_logistic_loss.h"
#include "cortado/layers/mvn.h"
#include "cortado/layers/normalize.h"
#include "cortado/layers/parameter.h"
#include "cortado/layers/permute.h"
#include "cortado/layers/pointwise.h"
#include "cortado/layers/pooling.h"
#include "cortado/layers/prelu.h"
#include "cortado/layers/reduction.h"
#include "cortado/layers/resampling.h"
#include "cortado/layers/reshape.h"
#include "cortado/layers/scale.h"
#include "cortado/layers/shuffle_channel.h"
#include "cortado/layers/sigmoid_cross_entropy_loss.h"
#include "cortado/layers/silence.h"
#include "cortado/layers/slice.h"
#include "cortado/layers/softmax.h"
#include "cortado/layers/softmax_loss.h"
#include "cortado/layers/split.h"
#include "cortado/layers/spp.h"
#include "cortado/layers/tile.h"

namespace cortado {
namespace {

template <typename T>
struct ReferenceEntry {
  const std::type_info& layer;
  ReferenceFactory<T> make;
};

template <typename T>
std::span<const ReferenceEntry<T>> reference_table() {
  static const ReferenceEntry<T> table[] = {
      {typeid(Convolution), make_convolution_reference<T>},
      {typeid(Deconvolution), make_deconvolution_reference<T>},
      {typeid(Pooling), make_pooling_reference<T>},
      {typeid(Im2col), make_im2col_reference<T>},
      {typeid(Spp), make_spp_reference<T>},
      {typeid(Resampling), make_resampling_reference<T>},
      {typeid(InnerProduct), make_inner_product_reference<T>},
      {typeid(Lrn), make_lrn_reference<T>},
      {typeid(BatchNorm), make_batch_norm_reference<T>},
      {typeid(Scale), make_scale_reference<T>},
      {typeid(Bias), make_bias_reference<T>},
      {typeid(PRelu), make_prelu_reference<T>},
      {typeid(Pointwise), make_pointwise_reference<T>},
      {typeid(Dropout), make_dropout_reference<T>},
      {typeid(Mvn), make_mvn_reference<T>},
      {typeid(Normalize), make_normalize_reference<T>},
      {typeid(Softmax), make_softmax_reference<T>},
      {typeid(SoftmaxLoss), make_softmax_loss_reference<T>},
      {typeid(EuclideanLoss), make_euclidean_loss_reference<T>},
      {typeid(SigmoidCrossEntropyLoss), make_sigmoid_cross_entropy_loss_reference<T>},
      {typeid(HingeLoss), make_hinge_loss_reference<T>},
      {typeid(InfogainLoss), make_infogain_loss_reference<T>},
      {typeid(MultinomialLogisticLoss), make_multinomial_logistic_loss_reference<T>},
      {typeid(ContrastiveLoss), make_contrastive_loss_reference<T>},
      {typeid(Accuracy), make_accuracy_reference<T>},
      {typeid(Concat), make_concat_reference<T>},
      {typeid(Slice), make_slice_reference<T>},
      {typeid(Split), make_split_reference<T>},
      {typeid(Eltwise), make_eltwise_reference<T>},
      {typeid(Axpy), make_axpy_reference<T>},
      {typeid(Flatten), make_reshape_reference<T>},
      {typeid(Reshape), make_reshape_reference<T>},
      {typeid(Crop), make_crop_reference<T>},
      {typeid(Reduction), make_reduction_reference<T>},
      {typeid(ArgMax), make_arg_max_reference<T>},
      {typeid(Tile), make_tile_reference<T>},
      {typeid(ShuffleChannel), make_shuffle_channel_reference<T>},
      {typeid(Permute), make_permute_reference<T>},
      {typeid(BatchReindex), make_batch_reindex_reference<T>},
      {typeid(Embed), make_embed_reference<T>},
      {typeid(Parameter), make_parameter_reference<T>},
      {typeid(Silence), make_silence_reference<T>},
      {typeid(Hdf5Output), make_hdf5_output_reference<T>},
  };
  return table;
}

}  // namespace

template <typename T>
std::unique_ptr<KernelOf<T>> make_reference_kernel(const Task& task) {
  if (task.layers.size() > 1) return make_chain_reference<T>(task);
  const Layer& layer = task.layer();
  for (const ReferenceEntry<T>& entry : reference_table<T>()) {
    if (entry.layer == typeid(layer)) return entry.make(task);
  }
  throw UserError(fmt::format("layer type {} has no kernel", layer.type()));
}

template std::unique_ptr<KernelOf<float>> make_reference_kernel<float>(const Task&);
template std::unique_ptr<KernelOf<double>> make_reference_kernel<double>(const Task&);

}  // namespace cortado
