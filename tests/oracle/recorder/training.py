"""One accumulator, one optimizer, one moving average: what a variable goes through on a parameter server."""
from .draw import chance, normal, plain, rows, uniform
from .optimizers import MAKE, hyper_parameters
from .schedules import draw_schedule, schedule_op
from .tf1 import DTYPES, session, tf

_APPLIES = 6


class _Draw:
    """What the script is about."""

    def __init__(self, rng, optimizer, sparse):
        self.optimizer = optimizer
        self.sparse = sparse
        self.shape = [int(rng.integers(2, 9)), int(rng.integers(1, 6))]
        self.dtype = "float64" if chance(rng, 0.15) else "float32"
        self.aggregate = int(rng.integers(1, 6))
        self.learning_rate = uniform(rng, 0.001, 0.3) if chance(rng, 0.6) else draw_schedule(rng)
        self.initial = normal(rng, self.shape, self.dtype)
        self.hyper_parameters = hyper_parameters(rng, optimizer)
        self.averages = {"decay": uniform(rng, 0.5, 0.999), "num_updates": chance(rng, 0.5)}


class _Graph:
    """The ops of the script, in the default graph."""

    def __init__(self, draw):
        self.variable = tf.get_variable("v", initializer=draw.initial)
        step = tf.train.get_or_create_global_step()
        self.local_step = tf.placeholder(tf.int64, [])
        take = self._accumulate_sparse(draw) if draw.sparse else self._accumulate_dense(draw)
        is_schedule = isinstance(draw.learning_rate, dict)
        self.rate = schedule_op(draw.learning_rate, step) if is_schedule else tf.constant(draw.learning_rate)
        optimizer = MAKE[draw.optimizer](self.rate, **draw.hyper_parameters)
        self.apply = optimizer.apply_gradients([(take, self.variable)], global_step=step)
        averages = tf.train.ExponentialMovingAverage(
            draw.averages["decay"], num_updates=step if draw.averages["num_updates"] else None
        )
        self.apply_average = averages.apply([self.variable])
        self.average = averages.average(self.variable)

    def _accumulate_dense(self, draw):
        accumulator = tf.ConditionalAccumulator(DTYPES[draw.dtype], shape=draw.shape)
        self.indices = None
        self.values = tf.placeholder(DTYPES[draw.dtype], draw.shape)
        self.push = accumulator.apply_grad(self.values, local_step=self.local_step)
        self.num_accumulated = accumulator.num_accumulated()
        return tf.identity(accumulator.take_grad(draw.aggregate))

    def _accumulate_sparse(self, draw):
        accumulator = tf.SparseConditionalAccumulator(DTYPES[draw.dtype], shape=())
        self.indices = tf.placeholder(tf.int64, [None])
        self.values = tf.placeholder(DTYPES[draw.dtype], [None, draw.shape[1]])
        slices = tf.IndexedSlices(self.values, self.indices)
        self.push = accumulator.apply_indexed_slices_grad(slices, local_step=self.local_step)
        self.num_accumulated = accumulator.num_accumulated()
        taken = accumulator.take_indexed_slices_grad(draw.aggregate)
        return tf.IndexedSlices(tf.identity(taken.values), tf.identity(taken.indices))


def _draw_local_step(rng, step):
    behind = int(rng.integers(-2, 0)) if chance(rng, 0.25) else 0
    ahead = 1 if chance(rng, 0.1) else 0
    return step + behind + ahead


def _push(rng, running, ops, draw, step):
    line = {"op": "push", "local_step": _draw_local_step(rng, step)}
    shape, feed = draw.shape, {ops.local_step: line["local_step"]}
    if draw.sparse:
        indices = rows(rng, shape[0])
        shape = [len(indices), shape[1]]
        feed[ops.indices] = indices
        line["indices"] = indices.tolist()
    values = normal(rng, shape, draw.dtype)
    feed[ops.values] = values
    running.run(ops.push, feed)
    line["values"] = plain(values)
    line["num_accumulated"] = int(running.run(ops.num_accumulated))
    return line


def _apply(running, ops, draw, step):
    rate = float(running.run(ops.rate))
    running.run(ops.apply)
    running.run(ops.apply_average)
    return {
        "op": "apply",
        "aggregate": draw.aggregate,
        "global_step": step + 1,
        "learning_rate": rate,
        "variable": plain(running.run(ops.variable)),
        "average": plain(running.run(ops.average)),
    }


def record_training(rng, optimizer, sparse):
    draw = _Draw(rng, optimizer, sparse)
    log = []
    with tf.Graph().as_default() as graph:
        ops = _Graph(draw)
        with session(graph) as running:
            running.run(tf.global_variables_initializer())
            for step in range(_APPLIES):
                accumulated = 0
                while accumulated < draw.aggregate or chance(rng, 0.3):
                    log.append(_push(rng, running, ops, draw, step))
                    accumulated = log[-1]["num_accumulated"]
                log.append(_apply(running, ops, draw, step))
    return {
        "kind": "training",
        "optimizer": optimizer,
        "hyper_parameters": draw.hyper_parameters,
        "learning_rate": draw.learning_rate,
        "averages": draw.averages,
        "sparse": sparse,
        "dtype": draw.dtype,
        "shape": draw.shape,
        "initial": plain(draw.initial),
        "log": log,
    }
