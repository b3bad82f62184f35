"""Blocks of rows that towers, each a logical CPU, keep and make many steps of, as Ray's LocalSyncParallelOptimizer
does it: slices of loaded variables, the towers' mean, clipping by global norm, batch norm's moving statistics."""
import numpy as np

from .draw import chance, plain, uniform
from .tf1 import tf

_MAX_TOWERS = 4


class _Draw:
    """What the script is about."""

    def __init__(self, rng):
        self.towers = int(rng.integers(1, _MAX_TOWERS + 1))
        self.max_per_device_batch_size = int(rng.integers(2, 9))
        self.features, self.hidden, self.classes = (int(n) for n in rng.integers(2, 6, 3))
        self.bn_momentum = uniform(rng, 0.5, 0.95)
        self.bn_epsilon = uniform(rng, 0.01, 0.1)
        self.batch_norm_updates = str(rng.choice(["EVERY_TOWER", "EVERY_TOWER", "MEAN", "FIRST_TOWER"]))
        self.optimizer = str(rng.choice(["sgd", "momentum"]))
        self.hyper_parameters = {"momentum": uniform(rng, 0.5, 0.9)} if self.optimizer == "momentum" else {}
        self.learning_rate = uniform(rng, 0.05, 0.3)
        self.global_norm = uniform(rng, 0.05, 0.6) if chance(rng, 0.6) else None
        self.initial = self._draw_variables(rng)

    def _draw_variables(self, rng):
        def draw(*shape):
            return rng.uniform(-1, 1, shape).astype(np.float32)

        return {
            "hidden/kernel": draw(self.features, self.hidden),
            "hidden/bias": draw(self.hidden),
            "norm/gamma": 1 + draw(self.hidden) / 2,
            "norm/beta": draw(self.hidden),
            "norm/moving_mean": draw(self.hidden),
            "norm/moving_variance": 1 + draw(self.hidden) / 2,
            "scores/kernel": draw(self.hidden, self.classes),
            "scores/bias": draw(self.classes),
        }


def _truncated(n, most, towers):
    """Rows per batch and tower, and rows that are kept: Ray's load_data without states."""
    batch = most * towers
    if n < batch:
        batch = n - n % towers
    return batch // towers, n - n % batch


class _Towers:
    """The graph. Batches are slices of variables that a load fills, one for each tower and array."""

    def __init__(self, draw):
        self._draw = draw
        self.variables = {name: tf.Variable(value.astype(np.float64)) for name, value in draw.initial.items()}
        self.index = tf.placeholder(tf.int32, [])
        self.batch = tf.placeholder(tf.int32, [])
        self.arrays = [tf.placeholder(tf.float64, [None, draw.features]), tf.placeholder(tf.int32, [None])]
        loaded, gradients, statistics, self.losses = [], [], [], []
        for tower, parts in enumerate(zip(*(tf.split(array, draw.towers) for array in self.arrays))):
            with tf.device(f"/cpu:{tower}"):
                kept = [tf.Variable(part, trainable=False, validate_shape=False, collections=[]) for part in parts]
                loaded += [part.initializer for part in kept]
                loss, moments = self._forward(*(self._slice(part) for part in kept))
                self.losses.append(loss)
                gradients.append(tf.gradients(loss, self._trained()))
                statistics.append(moments)
        self.load = tf.group(*loaded)
        means = [tf.reduce_mean(tf.stack(towers), 0) for towers in zip(*gradients)]
        if draw.global_norm is not None:
            means, _ = tf.clip_by_global_norm(means, draw.global_norm)
        # What a step returns is of before it: losses do not see the new values.
        with tf.control_dependencies(self.losses + means):
            updates = self._update_statistics(statistics)
        with tf.control_dependencies(updates):
            self.step = self._make_optimizer().apply_gradients(zip(means, self._trained()))

    def _make_optimizer(self):
        if self._draw.optimizer == "momentum":
            return tf.train.MomentumOptimizer(self._draw.learning_rate, **self._draw.hyper_parameters)
        return tf.train.GradientDescentOptimizer(self._draw.learning_rate)

    def _trained(self):
        return [variable for name, variable in self.variables.items() if "moving" not in name]

    def _slice(self, rows):
        rank = 2 if rows.dtype.base_dtype == tf.float64 else 1
        part = tf.slice(rows, [self.index] + [0] * (rank - 1), [self.batch] + [-1] * (rank - 1))
        part.set_shape([None, self._draw.features][:rank])
        return part

    def _forward(self, features, labels):
        v = self.variables
        hidden = tf.matmul(features, v["hidden/kernel"]) + v["hidden/bias"]
        mean, variance = tf.nn.moments(hidden, [0])
        normal = tf.nn.batch_normalization(
            hidden, mean, variance, v["norm/beta"], v["norm/gamma"], self._draw.bn_epsilon
        )
        scores = tf.matmul(tf.tanh(normal), v["scores/kernel"]) + v["scores/bias"]
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores)
        return tf.reduce_mean(losses), (mean, variance)

    def _update_statistics(self, statistics):
        mode = self._draw.batch_norm_updates
        if mode == "MEAN":
            statistics = [tuple(tf.reduce_mean(tf.stack(towers), 0) for towers in zip(*statistics))]
        elif mode == "FIRST_TOWER":
            statistics = statistics[:1]
        updates = []
        for moments in statistics:
            with tf.control_dependencies(updates):
                updates = [self._move(name, value) for name, value in zip(("mean", "variance"), moments)]
        return updates

    def _move(self, name, value):
        moving = self.variables[f"norm/moving_{name}"]
        return tf.assign_sub(moving, (moving - value) * (1 - self._draw.bn_momentum))


def _record_load(rng, draw, towers, running):
    n = int(rng.integers(draw.towers * 2, draw.towers * draw.max_per_device_batch_size * 3))
    features = rng.uniform(-2, 2, (n, draw.features)).astype(np.float32)
    labels = rng.integers(0, draw.classes, n)
    batch, kept = _truncated(n, draw.max_per_device_batch_size, draw.towers)
    running.run(towers.load, dict(zip(towers.arrays, [features[:kept], labels[:kept]])))
    tuples = kept // draw.towers
    yield {
        "op": "load_data",
        "features": plain(features),
        "labels": plain(labels),
        "tuples_per_device": tuples,
        "per_device_batch_size": batch,
    }
    for _ in range(int(rng.integers(1, 4))):
        index = int(rng.integers(0, tuples // batch)) * batch
        losses, _ = running.run([towers.losses, towers.step], {towers.index: index, towers.batch: batch})
        yield {
            "op": "optimize",
            "batch_index": index,
            "device_losses": [float(loss) for loss in losses],
            "variables": {name: plain(value) for name, value in running.run(towers.variables).items()},
        }


def record_local_sync(rng):
    draw = _Draw(rng)
    with tf.Graph().as_default() as graph:
        towers = _Towers(draw)
        config = tf.ConfigProto(device_count={"CPU": _MAX_TOWERS}, intra_op_parallelism_threads=1)
        with tf.Session(graph=graph, config=config) as running:
            running.run(tf.global_variables_initializer())
            log = [entry for _ in range(2) for entry in _record_load(rng, draw, towers, running)]
    fields = {name: value for name, value in vars(draw).items() if name != "initial"}
    return {
        "kind": "local_sync",
        **fields,
        "initial": {name: plain(value) for name, value in draw.initial.items()},
        "log": log,
    }
