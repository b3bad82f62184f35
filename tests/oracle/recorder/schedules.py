"""Learning-rate schedules: a random one, and its op."""
import numpy as np

from .draw import chance, uniform
from .tf1 import session, tf

_DECAYS = {
    "exponential": tf.train.exponential_decay,
    "natural_exp": tf.train.natural_exp_decay,
    "inverse_time": tf.train.inverse_time_decay,
}
_KINDS = [*_DECAYS, "piecewise", "polynomial", "cosine"]
_STEPS = 24


def draw_schedule(rng):
    kind = str(rng.choice(_KINDS))
    if kind == "piecewise":
        boundaries = sorted(rng.choice(np.arange(1, 12), int(rng.integers(1, 4)), replace=False).tolist())
        values = [uniform(rng, 0.01, 0.5) for _ in range(len(boundaries) + 1)]
        return {"schedule": kind, "boundaries": boundaries, "values": values}
    spec = {"schedule": kind, "learning_rate": uniform(rng, 0.01, 0.5), "decay_steps": int(rng.integers(2, 9))}
    if kind in _DECAYS:
        spec.update(decay_rate=uniform(rng, 0.1, 0.96), staircase=chance(rng, 0.5))
    elif kind == "polynomial":
        spec.update(
            end_learning_rate=uniform(rng, 0.0001, 0.009),
            power=float(rng.choice([1, 0.5, 2])),
            cycle=chance(rng, 0.5),
        )
    else:
        spec.update(alpha=uniform(rng, 0, 0.2))
    return spec


def schedule_op(spec, step):
    kind = spec["schedule"]
    if kind == "piecewise":
        return tf.train.piecewise_constant(step, [np.int64(b) for b in spec["boundaries"]], spec["values"])
    rate, steps = spec["learning_rate"], spec["decay_steps"]
    if kind == "polynomial":
        return tf.train.polynomial_decay(
            rate, step, steps, spec["end_learning_rate"], spec["power"], spec["cycle"]
        )
    if kind == "cosine":
        return tf.train.cosine_decay(rate, step, steps, spec["alpha"])
    return _DECAYS[kind](rate, step, steps, spec["decay_rate"], spec["staircase"])


def record_schedule(rng):
    spec = draw_schedule(rng)
    with tf.Graph().as_default() as graph:
        step = tf.placeholder(tf.int64, [])
        rate = schedule_op(spec, step)
        with session(graph) as running:
            values = [[s, float(running.run(rate, {step: s}))] for s in range(_STEPS)]
    return {"kind": "schedule", "spec": spec, "values": values}
