"""Steps of TensorFlow's SyncReplicasOptimizer over its gRPC, as a peer for the benchmark.

    tensorflow_sync.py WORKERS VARIABLES ELEMENTS

One parameter server and some workers, each a process, train VARIABLES variables of ELEMENTS float32
each with SGD; every worker is needed in every step. The gradient of a variable is the variable plus
one: it needs the pull and costs a pass over memory.

Answers one line when it trains. After that each line is a number of steps, answered by the seconds
that they took; in between the processes are stopped, so that they take nothing from others.
"""

import os
import signal
import sys
import time

from tensorflow_cluster import Cluster, free_addresses

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

LEARNING_RATE = 0.01
WARM_UP_STEPS = 3


def run_task(job, index, cluster, variables, elements, steps):
    """One process. Worker 0 puts TensorFlow's version into `steps`, then (global step, time) after
    each of its runs."""
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    tf.logging.set_verbosity(tf.logging.ERROR)
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    if job == "ps":
        server.join()
    workers = len(cluster["worker"])
    here = "/job:worker/task:%d" % index
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=here)):
        global_step = tf.train.get_or_create_global_step()
        values = [
            tf.get_variable("value_%d" % i, [elements], initializer=tf.zeros_initializer(),
                            use_resource=False) for i in range(variables)
        ]
        with tf.device(here):
            gradients = [tf.identity(value) + 1.0 for value in values]
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(LEARNING_RATE), workers, workers)
        train = optimizer.apply_gradients(list(zip(gradients, values)), global_step=global_step)
    if job == "worker" and index == 0:
        steps.put(tf.__version__)
    hook = optimizer.make_session_run_hook(index == 0)
    with tf.train.MonitoredTrainingSession(
            server.target, is_chief=index == 0, hooks=[hook], save_checkpoint_secs=None,
            save_summaries_steps=None, log_step_count_steps=None) as session:
        while True:
            _, step = session.run([train, global_step])
            if index == 0:
                steps.put((int(step), time.monotonic()))


class Steps:
    """What worker 0 says of the cluster's steps."""

    def __init__(self, cluster):
        self.cluster = cluster

    def wait_for(self, step):
        """The first step from this one on that worker 0 has seen, and when."""
        while True:
            seen, when = self.cluster.hear()
            if seen >= step:
                return seen, when

    def seconds_of(self, count):
        self.cluster.signal(signal.SIGCONT)
        now, _ = self.wait_for(0)
        # What was queued before the pause is of before it, too.
        while not self.cluster.said.empty():
            now, _ = self.cluster.said.get()
        first, start = self.wait_for(now + WARM_UP_STEPS)
        last, end = self.wait_for(first + count)
        self.cluster.signal(signal.SIGSTOP)
        return (end - start) * count / (last - first)


def main():
    workers, variables, elements = (int(argument) for argument in sys.argv[1:])
    addresses = free_addresses(1 + workers)
    tasks = {"ps": addresses[:1], "worker": addresses[1:]}
    arguments = [(job, i, tasks, variables, elements) for job in tasks for i in range(len(tasks[job]))]
    with Cluster(run_task, arguments) as cluster:
        version = cluster.hear()
        steps = Steps(cluster)
        steps.wait_for(WARM_UP_STEPS)
        cluster.signal(signal.SIGSTOP)
        print("TensorFlow", version, flush=True)
        for line in sys.stdin:
            print(steps.seconds_of(int(line)), flush=True)


if __name__ == "__main__":
    main()
