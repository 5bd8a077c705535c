#pragma once

#include "cortado/layers/layer.h"
#include "cortado/proto/caffe.pb.h"

namespace cortado::from_caffe {

// One function per layer type (several for pointwise functions): Caffe's options to the concrete Layer.
// Each throws UserError on options that Caffe refuses as well; the caller adds file, line and layer.
using Conversion = LayerPtr (*)(const caffe::LayerParameter&);

// windows.cpp
LayerPtr convolution(const caffe::LayerParameter& layer);
LayerPtr deconvolution(const caffe::LayerParameter& layer);
LayerPtr pooling(const caffe::LayerParameter& layer);

// weights.cpp: layers with parameters, and normalizations
LayerPtr inner_product(const caffe::LayerParameter& layer);
LayerPtr embed(const caffe::LayerParameter& layer);
LayerPtr batch_norm(const caffe::LayerParameter& layer);
LayerPtr scale(const caffe::LayerParameter& layer);
LayerPtr bias(const caffe::LayerParameter& layer);
LayerPtr prelu(const caffe::LayerParameter& layer);
LayerPtr lrn(const caffe::LayerParameter& layer);
LayerPtr mvn(const caffe::LayerParameter& layer);

// pointwise.cpp
LayerPtr relu(const caffe::LayerParameter& layer);
LayerPtr elu(const caffe::LayerParameter& layer);
LayerPtr sigmoid(const caffe::LayerParameter& layer);
LayerPtr tanh(const caffe::LayerParameter& layer);
LayerPtr abs_val(const caffe::LayerParameter& layer);
LayerPtr bnll(const caffe::LayerParameter& layer);
LayerPtr power(const caffe::LayerParameter& layer);
LayerPtr exp(const caffe::LayerParameter& layer);
LayerPtr log(const caffe::LayerParameter& layer);
LayerPtr dropout(const caffe::LayerParameter& layer);

// losses.cpp
LayerPtr softmax(const caffe::LayerParameter& layer);
LayerPtr softmax_loss(const caffe::LayerParameter& layer);
LayerPtr sigmoid_cross_entropy_loss(const caffe::LayerParameter& layer);
LayerPtr euclidean_loss(const caffe::LayerParameter& layer);
LayerPtr hinge_loss(const caffe::LayerParameter& layer);
LayerPtr contrastive_loss(const caffe::LayerParameter& layer);
LayerPtr accuracy(const caffe::LayerParameter& layer);
LayerPtr arg_max(const caffe::LayerParameter& layer);

// shapes.cpp
LayerPtr concat(const caffe::LayerParameter& layer);
LayerPtr slice(const caffe::LayerParameter& layer);
LayerPtr split(const caffe::LayerParameter& layer);
LayerPtr eltwise(const caffe::LayerParameter& layer);
LayerPtr flatten(const caffe::LayerParameter& layer);
LayerPtr reshape(const caffe::LayerParameter& layer);
LayerPtr crop(const caffe::LayerParameter& layer);
LayerPtr reduction(const caffe::LayerParameter& layer);
LayerPtr tile(const caffe::LayerParameter& layer);
LayerPtr silence(const caffe::LayerParameter& layer);
LayerPtr hdf5_output(const caffe::LayerParameter& layer);

// sources.cpp
LayerPtr data(const caffe::LayerParameter& layer);
LayerPtr image_data(const caffe::LayerParameter& layer);
LayerPtr hdf5_data(const caffe::LayerParameter& layer);
LayerPtr memory_data(const caffe::LayerParameter& layer);
LayerPtr dummy_data(const caffe::LayerParameter& layer);
LayerPtr input(const caffe::LayerParameter& layer);

}  // namespace cortado::from_caffe
