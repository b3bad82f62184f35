"""Ftrl with powers other than the root, to the last bit: which elements TensorFlow takes in vectors, and which alone."""
import numpy as np

from .draw import chance, normal, plain, rows, uniform
from .optimizers import MAKE, hyper_parameters
from .tf1 import session, tf

_APPLIES = 3


def _hyper_parameters(rng):
    drawn = hyper_parameters(rng, "ftrl")
    # An integer where TensorFlow squares, where it does not any more, and what lies between.
    drawn["learning_rate_power"] = -float(rng.choice([1, 3, 9])) if chance(rng, 0.2) else -uniform(rng, 0.1, 1.5)
    return drawn


def record_ftrl(rng, sparse):
    shape = [int(rng.integers(1, 6)), int(rng.integers(2, 21))]
    initial = normal(rng, shape, np.float32)
    hyper, rate = _hyper_parameters(rng), uniform(rng, 0.01, 0.3)
    log = []
    with tf.Graph().as_default() as graph:
        variable = tf.get_variable("v", initializer=initial)
        values = tf.placeholder(tf.float32, [None, shape[1]])
        indices = tf.placeholder(tf.int64, [None])
        optimizer = MAKE["ftrl"](rate, **hyper)
        gradient = tf.IndexedSlices(values, indices) if sparse else tf.reshape(values, shape)
        apply = optimizer.apply_gradients([(gradient, variable)])
        state = {"variable": variable, **{name: optimizer.get_slot(variable, name) for name in ("accum", "linear")}}
        with session(graph) as running:
            running.run(tf.global_variables_initializer())
            for _ in range(_APPLIES):
                named = np.unique(rows(rng, shape[0])) if sparse else np.arange(shape[0])
                given = normal(rng, [len(named), shape[1]], np.float32)
                running.run(apply, {values: given, indices: named})
                got = {name: plain(value) for name, value in running.run(state).items()}
                log.append({"indices": named.tolist(), "gradient": plain(given), **got})
    return {
        "kind": "ftrl",
        "hyper_parameters": hyper,
        "learning_rate": rate,
        "sparse": sparse,
        "shape": shape,
        "initial": plain(initial),
        "log": log,
    }
