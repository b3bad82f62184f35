"""The task with TensorFlow's MultiWorkerMirroredStrategy: two workers that reduce by its ring, a process each."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from recorder.ports import free_ports

from .task import OPTIMIZERS, REPLICAS, STEPS, VARIABLES, Digits


def train(digits_folder, initial, name):
    """(the loss of every step, the mean over the replicas; the final values)"""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(pathlib.Path(folder) / "initial.npz", **initial)
        addresses = [f"127.0.0.1:{port}" for port in free_ports(REPLICAS)]
        processes = []
        for number in range(REPLICAS):
            task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": number}}
            environment = dict(os.environ, TF_CONFIG=json.dumps(task), TF_CPP_MIN_LOG_LEVEL="3")
            command = [sys.executable, "-m", "mlp.with_mirrored_strategy", str(digits_folder), folder, name, str(number)]
            root = pathlib.Path(__file__).resolve().parent.parent
            processes.append(subprocess.Popen(command, cwd=root, env=environment, stderr=subprocess.PIPE, text=True))
        for process in processes:
            _, errors = process.communicate(timeout=300)
            if process.returncode != 0:
                raise RuntimeError(f"a worker of MultiWorkerMirroredStrategy exited with {process.returncode}\n{errors}")
        results = [np.load(pathlib.Path(folder) / f"worker-{number}.npz") for number in range(REPLICAS)]
        losses = np.mean([result["losses"] for result in results], axis=0)
        return losses, {key: results[0][key] for key in VARIABLES}


def _train_replica(digits, initial, name, number):
    import tensorflow as tf  # noqa: PLC0415 - the process that starts the workers must not have it

    make = {
        "sgd": tf.compat.v1.train.GradientDescentOptimizer,
        "momentum": lambda rate: tf.compat.v1.train.MomentumOptimizer(rate, 0.9),
        "adam": tf.compat.v1.train.AdamOptimizer,
    }
    ring = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=ring)
    with strategy.scope():
        variables = {key: tf.Variable(initial[key], name=key.replace("/", "_")) for key in VARIABLES}
        optimizer = make[name](OPTIMIZERS[name][1])

    def replica_step(images, labels):
        with tf.GradientTape() as tape:
            hidden = tf.nn.relu(tf.matmul(images, variables["hidden/kernel"]) + variables["hidden/bias"])
            scores = tf.matmul(hidden, variables["scores/kernel"]) + variables["scores/bias"]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores))
            # The optimizer sums over the replicas.
            share = loss / REPLICAS
        gradients = tape.gradient(share, list(variables.values()))
        optimizer.apply_gradients(zip(gradients, variables.values()))
        return loss

    @tf.function
    def step(images, labels):
        return strategy.run(replica_step, args=(images, labels))

    losses = []
    for number_of_step in range(STEPS):
        images, labels = digits.batch(number_of_step, number)
        losses.append(float(step(tf.constant(images), tf.constant(labels))))
    return losses, {key: variable.numpy() for key, variable in variables.items()}


def main(digits_folder, folder, name, number):
    initial = np.load(pathlib.Path(folder) / "initial.npz")
    losses, values = _train_replica(Digits(digits_folder), initial, name, int(number))
    np.savez(pathlib.Path(folder) / f"worker-{number}.npz", losses=losses, **values)


if __name__ == "__main__":
    main(*sys.argv[1:])
