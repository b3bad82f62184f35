"""Forward and backward of a chain of layers in PyTorch, as a peer for the benchmark.

Reads one JSON line that describes the network, the batch and the threads, and answers one that says
what computes. After that each line is a number of steps, answered by the seconds that they took.
"""

import json
import os
import re
import sys
import time

CONFIG = json.loads(sys.stdin.readline())
# PyTorch's own number of threads does not bind the library of its matrix products, which reads
# these when it is loaded.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = str(CONFIG["threads"])

import torch  # noqa: E402
from torch import nn  # noqa: E402


def module_of(layer):
    kind = layer["kind"]
    if kind == "conv2d":
        padding = "same" if layer["padding"] == "SAME" else 0
        return nn.Conv2d(layer["channels"], layer["filters"], layer["kernel"],
                         stride=layer["strides"], padding=padding)
    if kind == "max_pool":
        if layer["padding"] == "SAME":
            raise ValueError("max_pool: PyTorch has no SAME padding")
        return nn.MaxPool2d(layer["window"], layer["strides"])
    if kind == "dense":
        return nn.Linear(layer["inputs"], layer["units"])
    if kind == "dropout":
        return nn.Dropout(layer["rate"])
    return {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "flatten": nn.Flatten}[kind]()


class Trainer:
    """The network in one memory format."""

    def __init__(self, config, memory_format):
        torch.manual_seed(1)
        self.network = nn.Sequential(*[module_of(layer) for layer in config["layers"]])
        self.device = torch.device(config["device"])
        self.network = self.network.to(self.device, memory_format=memory_format)
        height, width, channels = config["input_shape"]
        batch = config["batch"]
        features = torch.rand(batch, channels, height, width, device=self.device)
        self.features = features.contiguous(memory_format=memory_format)
        self.labels = torch.randint(config["classes"], (batch,), device=self.device)
        self.loss = nn.CrossEntropyLoss()
        self.forward = self.network
        if config["compiled"]:
            self.forward = torch.compile(self.network, mode="reduce-overhead")

    def run(self, steps):
        start = time.perf_counter()
        for _ in range(steps):
            self.network.zero_grad(set_to_none=True)
            self.loss(self.forward(self.features), self.labels).backward()
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start


def blas_library():
    """What PyTorch was built to take its matrix products from: "mkl"."""
    found = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    return "CUDA" if CONFIG["device"] == "cuda" else found.group(1) if found else "an unknown BLAS"


def main():
    torch.set_num_threads(CONFIG["threads"])
    # Products of float32, as ours.
    torch.backends.cudnn.allow_tf32 = False
    formats = {"NCHW": torch.contiguous_format, "NHWC": torch.channels_last}
    if CONFIG["compiled"]:
        del formats["NCHW"]  # compiling takes half a minute
    trainers = {name: Trainer(CONFIG, memory_format) for name, memory_format in formats.items()}
    # At its best: whichever of its two layouts is faster for this network.
    for trainer in trainers.values():
        trainer.run(5)
    seconds = {name: min(trainer.run(10) for _ in range(5)) for name, trainer in trainers.items()}
    best = min(seconds, key=seconds.get)
    answer = {"version": torch.__version__, "layout": best, "blas": blas_library()}
    print(json.dumps(answer), flush=True)
    for line in sys.stdin:
        print(trainers[best].run(int(line)), flush=True)


main()
