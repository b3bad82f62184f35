"""Records what Keras answered for sigmoid cross-entropy, and for layers that share variables:

    python tests/oracle/record_losses.py tests/unit/worker/ops/sigmoid_keras.json \
        tests/unit/worker/tower/shared_keras.json

with the packages of requirements.txt. Keras computes in float64 with float32 numbers, as in
record_recurrent.py.
"""

import json
import sys

import keras
import numpy as np
import tensorflow as tf


def array(values):
    values = np.asarray(values, np.float64)
    return {"dims": list(values.shape), "values": [float(f"{value:.10g}") for value in values.ravel()]}


def draw(random, *shape):
    return random.uniform(-1, 1, shape).astype(np.float32).astype(np.float64)


def record_sigmoid(random, batch, outputs, scale, target):
    """The mean over batch and outputs, from logits; `target` None: one of each label's own."""
    logits = tf.constant((draw(random, batch, outputs) * scale).astype(np.float32), tf.float64)
    targets = np.abs(draw(random, batch, outputs)) if target is None else np.full((batch, outputs), target)
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = keras.losses.BinaryCrossentropy(from_logits=True)(targets, logits)
    return {
        "logits": array(logits),
        "targets": array(targets),
        "target": target,
        "loss": float(loss),
        "gradient": array(tape.gradient(loss, logits)),
        "probabilities": array(tf.sigmoid(logits)),
    }


def record_shared(random):
    """Two dense layers used three times each, two of the uses in a chain; the sum of three losses."""
    first, second = keras.layers.Dense(5, activation="relu"), keras.layers.Dense(5)
    x = tf.constant(draw(random, 6, 5))
    second(first(x))
    for layer in (first, second):
        layer.set_weights([draw(random, *weight.shape) for weight in layer.get_weights()])
    variables = first.trainable_variables + second.trainable_variables
    cross_entropy = keras.losses.BinaryCrossentropy(from_logits=True)
    with tf.GradientTape() as tape:
        one = second(first(x))
        two = second(first(one))
        three = second(first(two))
        losses = [cross_entropy(np.full((6, 5), target), logits)
                  for target, logits in ((1, one), (0, two), (0.25, three))]
        loss = tf.add_n(losses)
    return {
        "input": array(x),
        "variables": [array(variable) for variable in variables],
        "loss": float(loss),
        "gradients": [array(gradient)
                      for gradient in tape.gradient(loss, [variable.value for variable in variables])],
    }


def write(path, name, recorded):
    with open(path, "w") as file:
        file.write(json.dumps({"keras": keras.__version__, name: recorded}, separators=(",", ":")) + "\n")


def main():
    keras.backend.set_floatx("float64")
    random = np.random.default_rng(16)
    write(sys.argv[1], "cases", [
        record_sigmoid(random, 7, 1, 3, 1.0),
        record_sigmoid(random, 4, 3, 3, 0.0),
        record_sigmoid(random, 5, 2, 3, None),
        record_sigmoid(random, 3, 4, 80, None),
        record_sigmoid(random, 2, 1, 1, 0.9),
    ])
    write(sys.argv[2], "shared", record_shared(random))


main()
