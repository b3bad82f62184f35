"""Steps of TensorFlow's MultiWorkerMirroredStrategy (its ring over gRPC), as a peer for the benchmark.

    tensorflow_multiworker.py WORKERS VARIABLES ELEMENTS

Some workers, each a process, train VARIABLES variables of ELEMENTS float32 each with SGD. The gradient of a
variable is the variable plus one: it costs a pass over memory.

Answers one line when it trains. After that each line is a number of steps, answered by the seconds that
they took; in between the processes wait.
"""

import json
import multiprocessing
import os
import sys
import time

from tensorflow_cluster import Cluster, free_addresses

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

LEARNING_RATE = 0.01
WARM_UP_STEPS = 3


def run_worker(index, addresses, variables, elements, orders, said):
    """One process: for each number of steps that it is told, trains so many. Worker 0 says TensorFlow's version,
    then how long they took."""
    os.environ["TF_CONFIG"] = json.dumps(
        {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}})
    import tensorflow as tf

    ring = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=ring)
    with strategy.scope():
        values = [tf.Variable(tf.zeros([elements]), name="value_%d" % i) for i in range(variables)]
        optimizer = tf.compat.v1.train.GradientDescentOptimizer(LEARNING_RATE)

    def replica_step():
        optimizer.apply_gradients([(value + 1.0, value) for value in values])

    @tf.function
    def step():
        strategy.run(replica_step)

    def seconds_of(count):
        start = time.monotonic()
        for _ in range(count):
            step()
        return time.monotonic() - start

    seconds_of(WARM_UP_STEPS)
    if index == 0:
        said.put(tf.__version__)
    while True:
        count = orders.get()
        seconds_of(WARM_UP_STEPS)
        seconds = seconds_of(count)
        if index == 0:
            said.put(seconds)


def main():
    workers, variables, elements = (int(argument) for argument in sys.argv[1:])
    addresses = free_addresses(workers)
    orders = [multiprocessing.get_context("spawn").Queue() for _ in range(workers)]
    arguments = [(i, addresses, variables, elements, orders[i]) for i in range(workers)]
    with Cluster(run_worker, arguments) as cluster:
        print("TensorFlow", cluster.hear(), flush=True)
        for line in sys.stdin:
            for order in orders:
                order.put(int(line))
            print(cluster.hear(), flush=True)


if __name__ == "__main__":
    main()
