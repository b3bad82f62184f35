"""Towers of one worker, each a logical CPU, that train without one another: each pulls the shared variables, computes
a gradient from its own copy, and has it applied, while others have applied theirs."""
import numpy as np

from .draw import chance, plain, uniform
from .tf1 import tf

_MAX_TOWERS = 4
_MAKE = {
    "sgd": tf.train.GradientDescentOptimizer,
    "momentum": tf.train.MomentumOptimizer,
    "nesterov": lambda rate, momentum: tf.train.MomentumOptimizer(rate, momentum, use_nesterov=True),
}


class _Draw:
    """What the script is about: a linear regression, with a batch of its own for each tower."""

    def __init__(self, rng):
        self.towers = int(rng.integers(1, _MAX_TOWERS + 1))
        self.batch, self.features, self.outputs = (int(n) for n in rng.integers(1, 6, 3))
        self.optimizer = str(rng.choice(["sgd", "momentum", "momentum", "momentum", "nesterov"]))
        self.hyper_parameters = {} if self.optimizer == "sgd" else {"momentum": uniform(rng, 0.5, 0.95)}
        self.learning_rate = uniform(rng, 0.01, 0.1)
        self.scale_gradient = chance(rng, 0.6)
        draw = lambda *shape: rng.uniform(-1, 1, shape).astype(np.float32)
        self.initial = {"w/kernel": draw(self.features, self.outputs), "w/bias": draw(self.outputs)}
        self.rows = [draw(self.batch, self.features) for _ in range(self.towers)]
        self.targets = [3 * draw(self.batch, self.outputs) for _ in range(self.towers)]


class _Towers:
    def __init__(self, draw):
        self.variables = {name: tf.Variable(value.astype(np.float64)) for name, value in draw.initial.items()}
        shared = list(self.variables.values())
        optimizer = _MAKE[draw.optimizer](draw.learning_rate, **draw.hyper_parameters)
        self.pulls, self.pushes = [], []
        for tower in range(draw.towers):
            with tf.device(f"/cpu:{tower}"):
                own = [tf.Variable(value.astype(np.float64), trainable=False) for value in draw.initial.values()]
                self.pulls.append(tf.group(*(tf.assign(mine, value) for mine, value in zip(own, shared))))
                outputs = tf.matmul(tf.constant(draw.rows[tower], tf.float64), own[0]) + own[1]
                error = outputs - tf.constant(draw.targets[tower], tf.float64)
                loss = tf.reduce_mean(tf.reduce_sum(tf.square(error), 1) / 2)
                gradients = tf.gradients(loss, own)
                if draw.scale_gradient and draw.towers > 1:
                    gradients = [gradient * (1.0 / draw.towers) for gradient in gradients]
            self.pushes.append((loss, optimizer.apply_gradients(zip(gradients, shared))))


def _draw_events(rng, draw):
    """Each tower pulls and pushes in turn; between its two any others may push."""
    has_pulled = [False] * draw.towers
    for _ in range(6 * draw.towers):
        tower = int(rng.integers(0, draw.towers))
        yield ("push" if has_pulled[tower] else "pull"), tower
        has_pulled[tower] = not has_pulled[tower]


def _record(draw, towers, running, events):
    for op, tower in events:
        if op == "pull":
            running.run(towers.pulls[tower])
            yield {"op": op, "tower": tower}
            continue
        loss, _ = running.run(towers.pushes[tower])
        variables = {name: plain(value) for name, value in running.run(towers.variables).items()}
        yield {"op": op, "tower": tower, "loss": float(loss), "variables": variables}


def record_async_towers(rng):
    draw = _Draw(rng)
    events = list(_draw_events(rng, draw))
    with tf.Graph().as_default() as graph:
        towers = _Towers(draw)
        config = tf.ConfigProto(device_count={"CPU": _MAX_TOWERS}, intra_op_parallelism_threads=1)
        with tf.Session(graph=graph, config=config) as running:
            running.run(tf.global_variables_initializer())
            log = list(_record(draw, towers, running, events))
    fields = {name: value for name, value in vars(draw).items() if name not in ("initial", "rows", "targets")}
    return {
        "kind": "async_towers",
        **fields,
        "rows": [plain(value) for value in draw.rows],
        "targets": [plain(value) for value in draw.targets],
        "initial": {name: plain(value) for name, value in draw.initial.items()},
        "log": log,
    }
