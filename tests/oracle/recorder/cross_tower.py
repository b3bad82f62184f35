"""Batches of values on towers, each a logical CPU, through TensorFlow's cross-tower (now cross-device) ops."""
import functools

import numpy as np
from tensorflow.python.distribute import cross_device_ops, reduce_util, values
from tensorflow.python.framework.indexed_slices import IndexedSlices

from .draw import chance, plain
from .tf1 import DTYPES, tf

_TOWERS = 8
# AddN begins with whichever input's memory it can reuse, so its order is not fixed. Of multiples of this between -8
# and 8 every dtype holds all sums of 8 exactly: no order shows, and answers are equal to the last bit.
_UNITS = {"float16": 2.0**-3, "float32": 2.0**-16, "float64": 2.0**-40}
_REDUCE = {"SUM": reduce_util.ReduceOp.SUM, "MEAN": reduce_util.ReduceOp.MEAN}


def _device(number):
    return f"/job:localhost/replica:0/task:0/device:CPU:{number}"


def _maximum(terms):
    return functools.reduce(tf.maximum, terms)


class _Draw:
    """What the script is about."""

    def __init__(self, rng, op):
        self.op = op
        self.dtype = str(rng.choice(["float16", "float32", "float32", "float64"]))
        self.aggregation = str(rng.choice(list(_REDUCE)))
        self.num_packs = int(rng.integers(0, 5)) if op == "hierarchical_copy" else 0
        to_one = op == "reduction_to_one_device"
        self.reduce_to_device = int(rng.integers(0, _TOWERS)) if to_one and chance(rng, 0.4) else None
        self.accumulation = "maximum" if to_one and chance(rng, 0.25) else "add"
        # The original leaves out the last one of an odd number.
        self.count = int(rng.integers(1, _TOWERS + 1)) if to_one else int(rng.choice([2, 4, 6, 8]))
        self.devices = rng.permutation(_TOWERS)[: self.count].tolist()
        if not to_one:
            self.devices.sort()
        # Without any of these the whole batch is one all-reduce.
        self.has_sparse = chance(rng, 0.5)
        self.has_other_destinations = chance(rng, 0.4)

    def make(self):
        if self.op == "hierarchical_copy":
            return cross_device_ops.HierarchicalCopyAllReduce(num_packs=self.num_packs)
        target = None if self.reduce_to_device is None else _device(self.reduce_to_device)
        accumulation = _maximum if self.accumulation == "maximum" else None
        return cross_device_ops.ReductionToOneDevice(reduce_to_device=target, accumulation_fn=accumulation)


def _exact(rng, shape, dtype):
    unit = _UNITS[dtype]
    return (rng.integers(-int(8 / unit), int(8 / unit) + 1, shape) * unit).astype(dtype)


def _draw_pair(rng, draw):
    """One value of the batch: what each device has, and where the result goes."""
    tail = [int(n) for n in rng.integers(1, 4, int(rng.integers(0, 3)))]
    pair = {"devices": draw.devices, "destinations": draw.devices}
    if draw.has_other_destinations and chance(rng, 0.5):
        count = int(rng.integers(1, _TOWERS + 1))
        pair["destinations"] = rng.permutation(_TOWERS)[:count].tolist()
    if draw.has_sparse and chance(rng, 0.5):
        counts = [int(n) for n in rng.integers(0, 4, draw.count)]
        pair["shapes"] = [[n] + tail for n in counts]
        pair["indices"] = [rng.integers(0, 9, n).tolist() for n in counts]
    else:
        shape = [int(rng.integers(0, 6))] + tail if chance(rng, 0.9) else []
        pair["shapes"] = [shape] * draw.count
    pair["values"] = [plain(_exact(rng, shape, draw.dtype)) for shape in pair["shapes"]]
    return pair


def _per_replica(make_one, devices):
    parts = []
    for i, number in enumerate(devices):
        with tf.device(_device(number)):
            parts.append(make_one(i))
    return values.PerReplica(parts)


def _as_tensors(pair, dtype):
    """The value and the destinations as TensorFlow takes them."""

    def value(i):
        array = np.array(pair["values"][i], np.dtype(dtype)).reshape(pair["shapes"][i])
        dense = tf.identity(tf.constant(array, DTYPES[dtype]))
        if "indices" not in pair:
            return dense
        return IndexedSlices(dense, tf.identity(tf.constant(pair["indices"][i], tf.int64)))

    destinations = _per_replica(lambda i: tf.identity(tf.constant(0.0)), pair["destinations"])
    return _per_replica(value, pair["devices"]), destinations


def _fetch(result):
    """By destination: what to run."""
    parts = result.values if isinstance(result, values.DistributedValues) else [result]
    return [(part.values, part.indices) if isinstance(part, IndexedSlices) else (part,) for part in parts]


def _log_entry(pair, answers):
    entry = {**pair, "result_shape": list(answers[0][0].shape), "result": [plain(answer[0]) for answer in answers]}
    if "indices" in pair:
        entry["result_indices"] = [plain(answer[1]) for answer in answers]
    return entry


def record_cross_tower(rng, op):
    draw = _Draw(rng, op)
    pairs = [_draw_pair(rng, draw) for _ in range(int(rng.integers(1, 6)))]
    with tf.Graph().as_default() as graph:
        batch = [_as_tensors(pair, draw.dtype) for pair in pairs]
        fetches = [_fetch(result) for result in draw.make().batch_reduce(_REDUCE[draw.aggregation], batch)]
        config = tf.ConfigProto(device_count={"CPU": _TOWERS}, intra_op_parallelism_threads=1)
        with tf.Session(graph=graph, config=config) as running:
            answers = running.run(fetches)
    return {
        "kind": "cross_tower",
        "op": op,
        "dtype": draw.dtype,
        "aggregation": draw.aggregation,
        "num_packs": draw.num_packs,
        "reduce_to_device": draw.reduce_to_device,
        "accumulation": draw.accumulation,
        "log": [_log_entry(pair, answer) for pair, answer in zip(pairs, answers)],
    }
