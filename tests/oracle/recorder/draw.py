"""Random numbers for scripts, and numbers as JSON holds them."""
import numpy as np


def uniform(rng, low, high):
    """A float32 as a Python float: hyper-parameters are rounded once, before anybody computes with them."""
    return float(np.float32(rng.uniform(low, high)))


def chance(rng, probability):
    return bool(rng.random() < probability)


def normal(rng, shape, dtype):
    return rng.standard_normal(shape).astype(dtype)


def rows(rng, limit):
    """Row numbers below `limit` of a sparse gradient, mostly sorted and unique, as workers send them."""
    indices = rng.integers(0, limit, int(rng.integers(1, limit + 1))).astype(np.int64)
    return np.unique(indices) if chance(rng, 0.7) else indices


def plain(value):
    """Nested lists; a double holds every smaller float exactly."""
    array = np.asarray(value)
    return array.astype(np.float64 if array.dtype.kind == "f" else np.int64).tolist()


def with_names(value):
    """The same, where JSON has no number: "nan", "inf", "-inf"."""
    if isinstance(value, list):
        return [with_names(element) for element in value]
    return value if np.isfinite(value) else str(value)
