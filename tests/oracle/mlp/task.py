"""What both train: a network with one hidden layer on the digits, two replicas that each take half of a batch."""
import gzip
import pathlib
import struct

import numpy as np

STEPS = 200
REPLICAS = 2
GLOBAL_BATCH = 64
SCALE = 1 / 16
PIXELS, HIDDEN, CLASSES = 64, 32, 10
VARIABLES = ("hidden/kernel", "hidden/bias", "scores/kernel", "scores/bias")

# name: (the job file's optimizer, learning rate)
OPTIMIZERS = {
    "sgd": ("sgd {}", 0.1),
    "momentum": ("momentum { momentum: 0.9 }", 0.02),
    "adam": ("adam {}", 0.002),
}


def _read_idx(path):
    contents = gzip.decompress(pathlib.Path(path).read_bytes())
    rank = contents[3]
    shape = struct.unpack_from(f">{rank}I", contents, 4)
    return np.frombuffer(contents, np.uint8, offset=4 + 4 * rank).reshape(shape)


class Digits:
    """The training examples in the order of their files, again and again."""

    def __init__(self, folder):
        images = _read_idx(pathlib.Path(folder) / "train-images.idx.gz")
        self._images = images.reshape(len(images), PIXELS).astype(np.float32) * np.float32(SCALE)
        self._labels = _read_idx(pathlib.Path(folder) / "train-labels.idx.gz").astype(np.int64)

    def batch(self, step, replica):
        """Images and labels of the replica's part of the step's batch."""
        part = GLOBAL_BATCH // REPLICAS
        first = step * GLOBAL_BATCH + replica * part
        chosen = np.arange(first, first + part) % len(self._labels)
        return self._images[chosen], self._labels[chosen]
