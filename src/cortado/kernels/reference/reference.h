#pragma once

#include <memory>

#include "cortado/kernels/kernel.h"

namespace cortado {

// Naive kernels that everything else is compared with: loops over spoken indices, one thread, sums in double.
// T is float or double.

// The reference kernel of a task; of a chain of layers, the composite of their kernels.
// Throws UserError when a layer type has none or the kernel refuses the task.
template <typename T>
std::unique_ptr<KernelOf<T>> make_reference_kernel(const Task& task);

// One factory per layer class; they take tasks of a single layer, whole or a part that the layer's cuts allow
// (HDF5Output: whole ones only). Parameters are the slices that Task::parameter_box names.
template <typename T>
using ReferenceFactory = std::unique_ptr<KernelOf<T>> (*)(const Task& task);

template <typename T>
std::unique_ptr<KernelOf<T>> make_convolution_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_deconvolution_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_pooling_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_inner_product_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_lrn_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_batch_norm_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_scale_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_bias_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_prelu_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_pointwise_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_dropout_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_mvn_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_softmax_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_softmax_loss_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_euclidean_loss_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_sigmoid_cross_entropy_loss_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_hinge_loss_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_contrastive_loss_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_accuracy_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_concat_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_slice_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_split_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_eltwise_reference(const Task& task);
// Also of Flatten.
template <typename T>
std::unique_ptr<KernelOf<T>> make_reshape_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_crop_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_reduction_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_arg_max_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_tile_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_shuffle_channel_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_permute_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_normalize_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_axpy_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_resampling_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_multinomial_logistic_loss_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_infogain_loss_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_spp_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_batch_reindex_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_parameter_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_im2col_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_embed_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_silence_reference(const Task& task);
template <typename T>
std::unique_ptr<KernelOf<T>> make_hdf5_output_reference(const Task& task);

// A task of several layers: each layer's reference kernel in turn, through temporaries.
template <typename T>
std::unique_ptr<KernelOf<T>> make_chain_reference(const Task& task);

}  // namespace cortado
