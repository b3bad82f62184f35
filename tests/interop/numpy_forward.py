"""What a checkpoint makes of its job's test images, computed with NumPy alone.

    numpy_forward.py SOURCE_ROOT CHECKPOINT_FOLDER

Prints JSON: {"examples": ..., "correct": ..., "loss": ...}. Written from docs/model.md, in double precision, without our
code.
"""

import gzip
import json
import pathlib
import struct
import sys
import tempfile

import numpy as np
from google.protobuf import text_format

import protos
import read_checkpoint


def parse(source_root, manifest):
    with tempfile.TemporaryDirectory() as out:
        (model_pb2, _), (job_pb2, _) = protos.load(source_root, out, "model", "job")
    model = text_format.Parse(manifest["model"], model_pb2.ModelDef())
    job = text_format.Parse(manifest["job"], job_pb2.JobDef())
    return model_pb2, model, job


def read_idx(path):
    data = pathlib.Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    rank = data[3]
    types = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
    shape = struct.unpack(f">{rank}I", data[4:4 + 4 * rank])
    return np.frombuffer(data, types[data[2]], offset=4 + 4 * rank).reshape(shape)


def pair(values, default):
    values = list(values) or list(default)
    return tuple(values) if len(values) == 2 else (values[0], values[0])


def windows(x, size, stride, same, fill):
    """[n, oh, ow, kh, kw, c] of all positions of a window."""
    pads = [(0, 0)]
    for extent, window, step in zip(x.shape[1:3], size, stride):
        total = max((-(-extent // step) - 1) * step + window - extent, 0) if same else 0
        pads.append((total // 2, total - total // 2))
    x = np.pad(x, pads + [(0, 0)], constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, size, axis=(1, 2))
    return view[:, ::stride[0], ::stride[1]].transpose(0, 1, 2, 4, 5, 3)


class Forward:
    def __init__(self, model_pb2, model, tensors):
        self.model = model
        self.same = model_pb2.SAME
        self.tensors = {name: value.astype(np.float64) for name, value in tensors.items()}

    def run(self, x):
        """Scores (or outputs): what the loss layer takes."""
        return self.values(x)["scores of the loss"]

    def values(self, x):
        """What each layer puts out, by its name."""
        values = {"input": x}
        last = "input"
        for layer in self.model.layers:
            inputs = [values[name] for name in (layer.inputs or [last])]
            kind = layer.WhichOneof("kind")
            if kind in ("softmax_cross_entropy", "l2_loss"):
                values["scores of the loss"] = inputs[0]
            else:
                values[layer.name] = getattr(self, kind)(layer.name, getattr(layer, kind), *inputs)
            last = layer.name
        return values

    def dense(self, name, layer, x):
        return x @ self.tensors[f"{name}/kernel"] + (0 if layer.no_bias else self.tensors[f"{name}/bias"])

    def conv2d(self, name, layer, x):
        kernel = self.tensors[f"{name}/kernel"]
        view = windows(x, kernel.shape[:2], pair(layer.strides, [1]), layer.padding == self.same, 0)
        y = np.einsum("nhwijc,ijcf->nhwf", view, kernel, optimize=True)
        return y + (0 if layer.no_bias else self.tensors[f"{name}/bias"])

    def max_pool(self, name, layer, x):
        size = pair(layer.window, [])
        return windows(x, size, pair(layer.strides, size), layer.padding == self.same, -np.inf).max(axis=(3, 4))

    def average_pool(self, name, layer, x):
        size = pair(layer.window, [])
        # The mean over what lies inside the image.
        return np.nanmean(windows(x, size, pair(layer.strides, size), layer.padding == self.same, np.nan), axis=(3, 4))

    def relu(self, name, layer, x):
        return np.maximum(x, 0)

    def tanh(self, name, layer, x):
        return np.tanh(x)

    def sigmoid(self, name, layer, x):
        return 1 / (1 + np.exp(-x))

    def batch_norm(self, name, layer, x):
        part = {kind: self.tensors[f"{name}/{kind}"] for kind in ("gamma", "beta", "moving_mean", "moving_variance")}
        scale = part["gamma"] / np.sqrt(part["moving_variance"] + (layer.epsilon or 0.001))
        return (x - part["moving_mean"]) * scale + part["beta"]

    def dropout(self, name, layer, x):
        return x

    def flatten(self, name, layer, x):
        return x.reshape(len(x), -1)

    def add(self, name, layer, *inputs):
        return sum(inputs)

    def concatenate(self, name, layer, *inputs):
        return np.concatenate(inputs, axis=-1)


def scores_of(source_root, folder):
    """(scores, labels) of the job's test images."""
    manifest, tensors = read_checkpoint.read(folder)
    model_pb2, model, job = parse(source_root, manifest)
    data = job.data
    images = read_idx(data.idx.test_images).astype(np.float64)
    x = ((images - data.offset) * (data.scale or 1)).reshape(len(images), *model.input_shape)
    forward = Forward(model_pb2, model, tensors)
    scores = np.concatenate([forward.run(x[i:i + 500]) for i in range(0, len(x), 500)])
    return scores, read_idx(data.idx.test_labels).astype(np.int64)


def cross_entropy(scores, labels):
    largest = scores.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(scores - largest).sum(axis=1)) + largest[:, 0]
    return float((log_sum - scores[np.arange(len(labels)), labels]).mean())


def main():
    scores, labels = scores_of(*sys.argv[1:])
    correct = int((scores.argmax(axis=1) == labels).sum())
    print(json.dumps({"examples": len(labels), "correct": correct, "loss": cross_entropy(scores, labels)}))


if __name__ == "__main__":
    main()
