"""Forward and backward of a network in PyTorch, as a peer for the benchmark.

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


def padding_of(layer, window):
    """As many zeros as SAME has, half of them on each side: PyTorch has no other."""
    return [size // 2 for size in window] if layer["padding"] == "SAME" else 0


class Columns(nn.Module):
    def __init__(self, first, count):
        super().__init__()
        self.first, self.count = first, count

    def forward(self, x):
        return x[:, self.first:self.first + self.count]


class Lookup(nn.Module):
    """Rows of a table, side by side or as their sum."""

    def __init__(self, rows, dim, is_sum, sparse):
        super().__init__()
        self.table = nn.Embedding(rows, dim, sparse=sparse)
        self.is_sum = is_sum

    def forward(self, x):
        rows = self.table(x.long())
        return rows.sum(1) if self.is_sum else rows.flatten(1)


class Add(nn.Module):
    def forward(self, *terms):
        return sum(terms[1:], terms[0])


class Concatenate(nn.Module):
    def forward(self, *parts):
        return torch.cat(parts, 1)


def module_of(layer, sparse):
    kind = layer["kind"]
    if kind == "conv2d":
        return nn.Conv2d(layer["channels"], layer["filters"], layer["kernel"],
                         stride=layer["strides"], bias=layer["bias"],
                         padding=padding_of(layer, layer["kernel"]))
    if kind == "max_pool":
        return nn.MaxPool2d(layer["window"], layer["strides"],
                            padding=padding_of(layer, layer["window"]))
    if kind == "average_pool":
        if layer["padding"] == "SAME":
            raise ValueError("average_pool: PyTorch counts the zeros of SAME padding")
        return nn.AvgPool2d(layer["window"], layer["strides"])
    if kind == "batch_norm":
        return nn.BatchNorm2d(layer["channels"], eps=layer["epsilon"])
    if kind == "columns":
        return Columns(layer["first"], layer["count"])
    if kind == "embedding":
        return Lookup(layer["rows"], layer["dim"], layer["sum"], sparse)
    if kind == "add":
        return Add()
    if kind == "concatenate":
        return Concatenate()
    if kind == "dense":
        return nn.Linear(layer["columns"], layer["units"])
    if kind == "dropout":
        return nn.Dropout(layer["rate"])
    return {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "flatten": nn.Flatten}[kind]()


class Network(nn.Module):
    def __init__(self, layers, sparse):
        super().__init__()
        self.layers = nn.ModuleList([module_of(layer, sparse) for layer in layers])
        self.inputs = [layer["inputs"] for layer in layers]

    def forward(self, x):
        values = [x]
        for layer, inputs in zip(self.layers, self.inputs):
            values.append(layer(*[values[i] for i in inputs]))
        return values[-1]


def features_of(config):
    """Random pixels, or rows of numbers among which there are indices of rows of tables."""
    shape = config["input_shape"]
    if len(shape) == 3:
        height, width, channels = shape
        return torch.rand(config["batch"], channels, height, width)
    features = torch.rand(config["batch"], shape[0])
    for layer in config["layers"]:
        if layer["kind"] != "embedding":
            continue
        columns = config["layers"][layer["inputs"][0] - 1]
        end = columns["first"] + columns["count"]
        rows = torch.randint(layer["rows"], (config["batch"], columns["count"]))
        features[:, columns["first"]:end] = rows
    return features


class Trainer:
    """The network in one memory format, with gradients of whole tables or of the rows that are read."""

    def __init__(self, config, memory_format, sparse):
        torch.manual_seed(1)
        self.device = torch.device(config["device"])
        self.network = Network(config["layers"], sparse).to(self.device)
        features = features_of(config).to(self.device)
        if features.dim() == 4:
            self.network = self.network.to(memory_format=memory_format)
            features = features.contiguous(memory_format=memory_format)
        self.features = features
        batch = config["batch"]
        self.labels = torch.randint(config["classes"], (batch,), device=self.device)
        self.loss = nn.CrossEntropyLoss()
        self.forward = self.network
        if config["compiled"]:
            self.forward = torch.compile(self.network, mode="reduce-overhead")

    def run(self, steps):
        start = time.perf_counter()
        for _ in range(steps):
            self.network.zero_grad(set_to_none=True)
            with torch.autocast(self.device.type, torch.bfloat16, enabled=CONFIG["bfloat16"]):
                loss = self.loss(self.forward(self.features), self.labels)
            loss.backward()
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - start


def blas_library():
    """What PyTorch was built to take its matrix products from: "mkl"."""
    found = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    return "CUDA" if CONFIG["device"] == "cuda" else found.group(1) if found else "an unknown BLAS"


def main():
    torch.set_num_threads(CONFIG["threads"])
    # Products as ours.
    torch.backends.cudnn.allow_tf32 = CONFIG["tf32"]
    torch.backends.cuda.matmul.allow_tf32 = CONFIG["tf32"]
    ways = {"NCHW": (torch.contiguous_format, False), "NHWC": (torch.channels_last, False)}
    if any(layer["kind"] == "embedding" for layer in CONFIG["layers"]):
        ways = {"dense gradients": (torch.contiguous_format, False),
                "sparse gradients": (torch.contiguous_format, True)}
    # Compiling takes half a minute, and knows no sparse gradients; of a large batch one layout fits.
    if CONFIG["compiled"] or CONFIG["input_shape"][0] > 100:
        ways = {name: way for name, way in ways.items() if name in ("NHWC", "dense gradients")}
    trainers = {name: Trainer(CONFIG, *way) for name, way in ways.items()}
    # At its best: whichever way is faster for this network.
    for trainer in trainers.values():
        trainer.run(5)
    seconds = {name: min(trainer.run(5) for _ in range(5)) for name, trainer in trainers.items()}
    best = min(seconds, key=seconds.get)
    answer = {"version": torch.__version__, "way": best, "blas": blas_library()}
    print(json.dumps(answer), flush=True)
    for line in sys.stdin:
        print(trainers[best].run(int(line)), flush=True)


main()
