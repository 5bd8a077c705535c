#pragma once

#include "cortado/net/network.h"
#include "cortado/parallel/strategy.h"
#include "cortado/tune/device_blocks.h"

namespace cortado {

// What the layers of a branch are cut along, on the devices of a block.
enum class BlockCut {
  scaled,   // as the layer is cut already, with degrees lowered to what the block has devices for
  sample,   // samples first, then space, then channels, as far as the shapes allow
  space,    // space first, then samples and channels
  channel,  // channels first, then samples and space
  single,   // not at all: on the block's first device
};
inline constexpr BlockCut block_cuts[] = {BlockCut::scaled, BlockCut::sample, BlockCut::space,
                                          BlockCut::channel, BlockCut::single};

// The layer on a block of devices. Always one that the layer's shapes allow; gradients are summed by
// allreduce, the rest is as in `layer`. The layer must not share parameters.
LayerStrategy cut_in_block(const Network& network, NodeIndex node, const LayerStrategy& layer,
                           DeviceBlock block, BlockCut cut);

}  // namespace cortado
