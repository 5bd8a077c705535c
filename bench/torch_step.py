#!/usr/bin/env python3
"""Times training steps of a torchvision model in PyTorch: float32 or, with --precision bf16, autocast to bfloat16 or
(--converted) all of it in bfloat16, weights and updates too; SGD with momentum and weight decay, dropout as the model has
it, random data that stays in memory. With --inference, forward passes without gradients. --scripted runs the model as
TorchScript (traced; frozen for inference). PyTorch 1.13 has no gradient of ReLU6 in bfloat16: there it is written as a clamp.

Prints one JSON object: {"images_per_second", "step_seconds" (median), "steps" (all), "loss"}, on a GPU also "memory_bytes".
With --ranks the model is wrapped in DistributedDataParallel (gloo): start that many, each with its own --rank and the
address of rank 0 as --master; each then has a batch of its own. With --device cuda it runs on a GPU: --compile compiles
the model, --tf32 lets products in float32 be TF32. Needs Debian's python3-torch and python3-torchvision.
"""

import argparse
import json
import statistics
import time

import torch
import torchvision.models as tv

from small_nets import UNet3d, cifar10_quick, cifar_resnet, lenet

MODELS = {
    "alexnet": tv.alexnet,
    "vgg-a": tv.vgg11,
    "vgg-16": tv.vgg16,
    "vgg-16-bn": tv.vgg16_bn,
    "resnet-18": tv.resnet18,
    "resnet-50": tv.resnet50,
    "inception-v3": lambda: tv.inception_v3(aux_logits=False, init_weights=False),
    "wrn-50-2": tv.wide_resnet50_2,
    "resnext-50-32x4d": tv.resnext50_32x4d,
    "densenet-121": tv.densenet121,
    "squeezenet-1.1": tv.squeezenet1_1,
    "mobilenet-v2": tv.mobilenet_v2,
    "mnasnet-1.0": tv.mnasnet1_0,
    "efficientnet-b0": lambda: tv.efficientnet_b0(stochastic_depth_prob=0),
    "regnet-y-1.6gf": tv.regnet_y_1_6gf,
    "googlenet-bn": lambda: tv.googlenet(aux_logits=False, init_weights=False),
    "shufflenet-v2-x1.0": tv.shufflenet_v2_x1_0,
    "resnet-20": lambda: cifar_resnet(3),
    "resnet-110": lambda: cifar_resnet(18),
    "lenet": lenet,
    "cifar10_quick": cifar10_quick,
    "u-net-3d": UNet3d,
}
# Shape of the images and number of classes, where they are not ImageNet's usual ones.
INPUTS = {"inception-v3": ((3, 299, 299), 1000), "lenet": ((1, 28, 28), 10), "u-net-3d": ((1, 64, 64, 64), 3)}
INPUTS |= {model: ((3, 32, 32), 10) for model in ("resnet-20", "resnet-110", "cifar10_quick")}
DENSE = {"u-net-3d"}  # a label for each position


class ClampTo6(torch.nn.Module):
    def forward(self, values):
        return values.clamp(0, 6)


def without_relu6(module):
    """The module, in which every ReLU6 has become a clamp."""
    for name, child in module.named_children():
        setattr(module, name, ClampTo6() if isinstance(child, torch.nn.ReLU6) else without_relu6(child))
    return module


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, choices=MODELS)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=1, help="steps before those that are timed")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--master", default="127.0.0.1", help="address of rank 0")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--converted", action="store_true", help="bf16: convert the model in place of autocast")
    parser.add_argument("--inference", action="store_true", help="forward passes alone")
    parser.add_argument("--scripted", action="store_true", help="as TorchScript")
    parser.add_argument("--channels-last", action="store_true", help="keep activations and weights channels last")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    parser.add_argument("--tf32", action="store_true", help="on a GPU: products of float32 as TF32")
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = arguments.tf32
    torch.backends.cudnn.benchmark = arguments.device == "cuda"
    shape, classes = INPUTS.get(arguments.model, ((3, 224, 224), 1000))
    last = torch.channels_last if len(shape) == 3 else torch.channels_last_3d
    layout = last if arguments.channels_last else torch.contiguous_format
    model = MODELS[arguments.model]().train(not arguments.inference).to(arguments.device, memory_format=layout)
    if arguments.ranks > 1:
        torch.distributed.init_process_group("gloo", init_method=f"tcp://{arguments.master}:29400", rank=arguments.rank,
                                             world_size=arguments.ranks)
        model = torch.nn.parallel.DistributedDataParallel(model)
    images = torch.randn(arguments.batch, *shape).to(arguments.device).contiguous(memory_format=layout)
    if arguments.converted:
        model, images = model.bfloat16(), images.bfloat16()
    autocast = arguments.precision == "bf16" and not arguments.converted
    if arguments.precision == "bf16":
        without_relu6(model)
    if arguments.scripted:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            model = torch.jit.trace(model, images, check_trace=False)
        model = torch.jit.freeze(model) if arguments.inference else model
    if arguments.compile:
        model = torch.compile(model)
    labelled = shape[1:] if arguments.model in DENSE else ()
    labels = torch.randint(classes, (arguments.batch, *labelled)).to(arguments.device)
    if not arguments.inference:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, weight_decay=0.0005)

    def step():
        """Returns the loss, or where there is none the largest output."""
        with torch.autocast(arguments.device, dtype=torch.bfloat16, enabled=autocast):
            if arguments.inference:
                with torch.no_grad():
                    return model(images).float().max()
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.cross_entropy(model(images).float(), labels)
        loss.backward()
        optimizer.step()
        return loss

    seconds = []
    for _ in range(arguments.warm_up + arguments.iterations):
        begin = time.perf_counter()
        loss = step()
        if arguments.device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    steps = seconds[arguments.warm_up:]
    median = statistics.median(steps)
    report = {"images_per_second": arguments.batch / median, "step_seconds": median, "steps": steps, "loss": loss.item()}
    if arguments.device == "cuda":
        report["memory_bytes"] = torch.cuda.max_memory_reserved()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
