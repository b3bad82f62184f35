"""Records outputs and gradients of Keras's LSTM and GRU for seeded inputs:

    python tests/oracle/record_recurrent.py tests/unit/worker/ops/recurrent_keras.json

with the packages of requirements.txt. Keras computes in float64 with inputs and variables that are
float32 numbers, so that what differs is the rounding of the other side.
"""

import json
import sys

import keras
import numpy as np
import tensorflow as tf

# kind, batch, time, inputs, units, return_sequences, bias, initial states
CASES = [
    ("lstm", 3, 5, 4, 6, True, True, False),
    ("lstm", 2, 7, 3, 5, False, True, True),
    ("lstm", 4, 1, 2, 3, True, False, True),
    ("lstm", 1, 12, 1, 1, False, True, False),
    ("lstm", 5, 9, 8, 17, True, True, True),
    ("gru", 3, 5, 4, 6, True, True, False),
    ("gru", 2, 7, 3, 5, False, True, True),
    ("gru", 4, 1, 2, 3, True, False, True),
    ("gru", 1, 12, 1, 1, False, True, False),
    ("gru", 5, 9, 8, 17, True, True, True),
]


def array(values):
    values = np.asarray(values, np.float64)
    return {"dims": list(values.shape), "values": [float(f"{value:.10g}") for value in values.ravel()]}


def record(case, random):
    kind, batch, time, inputs, units, sequences, bias, states = case
    layer = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}[kind](
        units, return_sequences=sequences, use_bias=bias)
    draw = lambda *shape: random.uniform(-1, 1, shape).astype(np.float32).astype(np.float64)
    given = [tf.constant(draw(batch, time, inputs))]
    if states:
        given += [tf.constant(draw(batch, units)) for _ in range(2 if kind == "lstm" else 1)]
    layer(given[0], initial_state=given[1:] or None)
    layer.set_weights([draw(*weight.shape) for weight in layer.get_weights()])
    variables = layer.trainable_variables
    with tf.GradientTape() as tape:
        tape.watch(given)
        output = layer(given[0], initial_state=given[1:] or None)
        weights = draw(*output.shape)
        objective = tf.reduce_sum(output * weights)
    gradients = tape.gradient(objective, given + [variable.value for variable in variables])
    return {
        "kind": kind,
        "return_sequences": sequences,
        "inputs": [array(value) for value in given],
        "variables": [array(variable) for variable in variables],
        "output_gradient": array(weights),
        "output": array(output),
        "input_gradients": [array(value) for value in gradients[:len(given)]],
        "variable_gradients": [array(value) for value in gradients[len(given):]],
    }


def main():
    keras.backend.set_floatx("float64")
    random = np.random.default_rng(16)
    cases = [record(case, random) for case in CASES]
    with open(sys.argv[1], "w") as file:
        file.write(json.dumps({"keras": keras.__version__, "cases": cases}, indent=None,
                              separators=(",", ":")).replace('{"kind"', '\n{"kind"') + "\n")


main()
