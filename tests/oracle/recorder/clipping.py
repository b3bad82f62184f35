"""Clipping by value, by norm and by the norm of all tensors together."""
import numpy as np

from .draw import chance, normal, plain, uniform, with_names
from .tf1 import session, tf


def _draw_tensors(rng):
    shapes = [[int(n) for n in rng.integers(1, 5, 2)] for _ in range(int(rng.integers(1, 4)))]
    tensors = [normal(rng, shape, np.float32) * np.float32(rng.uniform(0.1, 5)) for shape in shapes]
    if chance(rng, 0.1):
        tensors[0][0, 0] = np.inf if chance(rng, 0.5) else np.nan
    return tensors


def _clip(op, tensors, clip):
    """The clipped tensors, and the norm where the op tells it."""
    if op == "global_norm":
        return tf.clip_by_global_norm(tensors, clip)
    if op == "norm":
        return [tf.clip_by_norm(tensor, clip) for tensor in tensors], tf.constant(0.0)
    return [tf.clip_by_value(tensor, -clip, clip) for tensor in tensors], tf.constant(0.0)


def record_clipping(rng):
    tensors = _draw_tensors(rng)
    op = str(rng.choice(["global_norm", "norm", "value"]))
    clip = uniform(rng, 0.2, 8)
    with tf.Graph().as_default() as graph:
        ops = _clip(op, [tf.constant(tensor) for tensor in tensors], clip)
        with session(graph) as running:
            clipped, norm = running.run(ops)
    return {
        "kind": "clipping",
        "op": op,
        "clip": clip,
        "tensors": [with_names(plain(tensor)) for tensor in tensors],
        "clipped": [with_names(plain(tensor)) for tensor in clipped],
        "norm": with_names(float(norm)) if op == "global_norm" else None,
    }
