"""Accuracy of a checkpoint by a forward pass in NumPy, in double precision, written from docs/model.md alone.

    numpy_accuracy.py SOURCE_ROOT CHECKPOINT_FOLDER IMAGES.idx.gz LABELS.idx.gz

Prints one number. Reads the tensors with the safetensors package and the manifest with the json module.
"""
import gzip
import json
import pathlib
import sys
import tempfile

import numpy as np
from google.protobuf import text_format
from safetensors.numpy import load_file

import protos


def read_idx(path):
    data = (gzip.open if path.endswith(".gz") else open)(path, "rb").read()
    rank = data[3]
    dims = np.frombuffer(data, ">u4", rank, 4)
    return np.frombuffer(data, "u1", offset=4 + 4 * rank).reshape(dims)


def padding(extent, window, stride, same):
    if not same:
        return 0, 0
    total = max((-(-extent // stride) - 1) * stride + window - extent, 0)
    return total // 2, total - total // 2


def windows(x, size, strides, same, fill):
    """[n, out_h, out_w, kh, kw, c] of x [n, h, w, c]."""
    pads = [padding(x.shape[1 + a], size[a], strides[a], same) for a in range(2)]
    x = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, size, axis=(1, 2))
    return view[:, :: strides[0], :: strides[1]].transpose(0, 1, 2, 4, 5, 3)


def pair(values, default):
    values = list(values) or list(default)
    return tuple(values if len(values) == 2 else values * 2)


def forward(layer, name, inputs, tensors):
    kind = layer.WhichOneof("kind")
    x = inputs[0]
    var = lambda suffix: tensors[f"{name}/{suffix}"].astype(np.float64)
    if kind == "dense":
        y = x @ var("kernel")
        return y if layer.dense.no_bias else y + var("bias")
    if kind == "conv2d":
        op = layer.conv2d
        view = windows(x, pair(op.kernel, [1]), pair(op.strides, [1]), op.padding == 0, 0.0)
        y = np.einsum("nhwijc,ijcf->nhwf", view, var("kernel"), optimize=True)
        return y if op.no_bias else y + var("bias")
    if kind in ("max_pool", "average_pool"):
        op = getattr(layer, kind)
        size = pair(op.window, [2])
        strides = pair(op.strides, size)
        if kind == "max_pool":
            return windows(x, size, strides, op.padding == 0, -np.inf).max(axis=(3, 4))
        return np.nanmean(windows(x, size, strides, op.padding == 0, np.nan), axis=(3, 4))
    if kind == "relu":
        return np.maximum(x, 0)
    if kind == "tanh":
        return np.tanh(x)
    if kind == "sigmoid":
        return 1 / (1 + np.exp(-x))
    if kind == "batch_norm":
        scale = var("gamma") / np.sqrt(var("moving_variance") + (layer.batch_norm.epsilon or 0.001))
        return (x - var("moving_mean")) * scale + var("beta")
    if kind == "flatten":
        return x.reshape(len(x), -1)
    if kind == "add":
        return sum(inputs)
    if kind == "concatenate":
        return np.concatenate(inputs, axis=-1)
    if kind in ("dropout", "softmax_cross_entropy", "l2_loss"):
        return x
    sys.exit(f"layer {name}: unknown kind {kind}")


def main():
    source_root, folder, images, labels = sys.argv[1:]
    manifest = json.loads(pathlib.Path(folder, "manifest.json").read_text())
    tensors = {}
    for shard in manifest["shards"]:
        tensors.update(load_file(pathlib.Path(folder, shard["file"])))
    with tempfile.TemporaryDirectory() as out:
        (model_pb2, _), (job_pb2, _) = protos.load(source_root, out, "model", "job")
    model = text_format.Parse(manifest["model"], model_pb2.ModelDef())
    data = text_format.Parse(manifest["job"], job_pb2.JobDef()).data
    x = (read_idx(images).astype(np.float64) - data.offset) * (data.scale or 1.0)
    outputs = {"input": x.reshape(len(x), *model.input_shape)}
    previous = "input"
    for layer in model.layers:
        outputs[layer.name] = forward(layer, layer.name, [outputs[i] for i in layer.inputs or [previous]], tensors)
        previous = layer.name
    print((outputs[previous].argmax(axis=1) == read_idx(labels)).mean())


main()
