"""compare_halves.py CONVERT_HALVES: our conversions to half the width and back against NumPy's float16 and
ml_dtypes' bfloat16 (TensorFlow's), bit by bit; of a NaN, that it is one and its sign."""
import subprocess
import sys

import ml_dtypes
import numpy as np


def edges(dtype):
    """All of the type, what lies in the middle between neighbours, and the float32 beside both."""
    patterns = np.arange(0x10000, dtype=np.uint32).astype(np.uint16).view(dtype).astype(np.float32)
    finite = np.sort(patterns[np.isfinite(patterns)])
    middle = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
    exact = np.concatenate([patterns, middle]).view(np.uint32)
    return np.concatenate([exact, exact + np.uint32(1), exact - np.uint32(1)])


def special():
    """Subnormal, large and not finite float32, NaN with every single bit of their payload, and anything."""
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    nan = np.uint32(0x7F800000) | bits[:23]
    large = np.arange(0x7F7F0000, 0x7F810000, 3, dtype=np.uint32)
    random = np.random.default_rng(1).integers(0, 2**32, 1_000_000, dtype=np.uint32)
    some = np.concatenate([bits, nan, large, random])
    return np.concatenate([some, some ^ np.uint32(0x80000000)])


def same(ours, theirs, what):
    assert ours.shape == theirs.shape, (what, ours.shape, theirs.shape)
    integer = np.uint16 if ours.itemsize == 2 else np.uint32
    wide = ours.astype(np.float32), theirs.astype(np.float32)
    nan = np.isnan(wide[0]) & np.isnan(wide[1]) & (np.signbit(wide[0]) == np.signbit(wide[1]))
    wrong = np.flatnonzero((ours.view(integer) != theirs.view(integer)) & ~nan)
    assert len(wrong) == 0, (what, len(wrong), wrong[:5], ours[wrong[:5]], theirs[wrong[:5]])


def main():
    np.seterr(all="ignore")
    for name, dtype in (("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)):
        numbers = np.concatenate([edges(dtype), special()]).view(np.float32)
        out = subprocess.run([sys.argv[1], name], input=numbers.tobytes(), stdout=subprocess.PIPE, check=True).stdout
        narrow = np.frombuffer(out[: 2 * len(numbers)], dtype=np.uint16).view(dtype)
        wide = np.frombuffer(out[2 * len(numbers) :], dtype=np.float32)
        same(narrow, numbers.astype(dtype), f"rounded to {name}")
        patterns = np.arange(0x10000, dtype=np.uint32).astype(np.uint16).view(dtype)
        same(wide, patterns.astype(np.float32), f"widened from {name}")
        print(f"{name}: {len(numbers)} rounded, {len(wide)} widened")


main()
