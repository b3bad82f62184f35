"""Records what Keras's AdamW answers, as scripts to replay.

    record_adamw.py FOLDER --seed N [--cases N]

Needs requirements.txt. Writes FOLDER/adamw.jsonl.gz in the format of record.py, kind "adamw": one variable, its
optimizer alone. "log": {indices, gradient, variable, m, v}, m and v being Keras's momentum and velocity. A program of
its own: Keras runs eagerly, and record.py turns that off.
"""
import argparse
import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from recorder.draw import normal, plain, uniform  # noqa: E402
from recorder.script_file import write  # noqa: E402

_APPLIES = 6


def _hyper_parameters(rng):
    return {
        "beta1": uniform(rng, 0.5, 0.95),
        "beta2": uniform(rng, 0.9, 0.9999),
        "epsilon": uniform(rng, 1e-8, 1e-3),
        "weight_decay": uniform(rng, 0.01, 0.5),
    }


def _optimizer(hyper, rate):
    return keras.optimizers.AdamW(
        learning_rate=rate,
        weight_decay=hyper["weight_decay"],
        beta_1=hyper["beta1"],
        beta_2=hyper["beta2"],
        epsilon=hyper["epsilon"],
    )


def record_adamw(rng, sparse):
    shape = [int(rng.integers(2, 9)), int(rng.integers(1, 6))]
    # In float64 Keras holds the powers of the betas in float64, TensorFlow's Adam and ours hold them in float32.
    dtype = "float32"
    initial = normal(rng, shape, dtype)
    hyper, rate = _hyper_parameters(rng), uniform(rng, 0.001, 0.3)
    keras.config.set_floatx(dtype)
    variable = keras.Variable(initial, dtype=dtype)
    optimizer = _optimizer(hyper, rate)
    optimizer.build([variable])
    log = []
    for _ in range(_APPLIES):
        count = int(rng.integers(1, shape[0] + 1)) if sparse else shape[0]
        named = np.sort(rng.permutation(shape[0])[:count]).astype(np.int64)
        given = normal(rng, [count, shape[1]], dtype)
        slices = tf.IndexedSlices(tf.constant(given), tf.constant(named), tf.constant(shape, tf.int64))
        optimizer.apply([slices if sparse else tf.constant(given)], [variable])
        momentum, velocity = optimizer._momentums[0], optimizer._velocities[0]
        state = {"variable": variable, "m": momentum, "v": velocity}
        log.append({
            "indices": named.tolist(),
            "gradient": plain(given),
            **{name: plain(keras.ops.convert_to_numpy(value)) for name, value in state.items()},
        })
    return {
        "kind": "adamw",
        "hyper_parameters": hyper,
        "learning_rate": rate,
        "sparse": sparse,
        "dtype": dtype,
        "shape": shape,
        "initial": plain(initial),
        "log": log,
    }


def record(seed, cases):
    rng = np.random.default_rng(seed)
    for case in range(cases):
        for sparse, way in ((False, "dense"), (True, "sparse")):
            yield {
                "name": f"adamw_{way}_{case}",
                "seed": seed,
                "tensorflow": tf.__version__,
                "keras": keras.__version__,
                **record_adamw(rng, sparse),
            }


def main():
    parser = argparse.ArgumentParser(description="Records what Keras's AdamW answers, as scripts to replay.")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--cases", type=int, default=2, help="each dense and sparse")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    count = write(arguments.folder / "adamw.jsonl.gz", record(arguments.seed, arguments.cases))
    print(f"{count} scripts from Keras {keras.__version__}, seed {arguments.seed}")


if __name__ == "__main__":
    main()
