"""Steps of TensorFlow's SyncReplicasOptimizer over its gRPC, as a peer for the benchmark.

    tensorflow_sync.py WORKERS VARIABLES ELEMENTS

One parameter server and some workers, each a process, train VARIABLES variables of ELEMENTS float32
each with SGD; every worker is needed in every step. The gradient of a variable is the variable plus
one: it needs the pull and costs a pass over memory.

Answers one line when it trains. After that each line is a number of steps, answered by the seconds
that they took; in between the processes are stopped, so that they take nothing from others.
"""

import multiprocessing
import os
import queue
import signal
import socket
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

LEARNING_RATE = 0.01
WARM_UP_STEPS = 3
START_TIMEOUT_S = 120


def free_addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    for sock in sockets:
        sock.bind(("127.0.0.1", 0))
    addresses = ["127.0.0.1:%d" % sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return addresses


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


class Cluster:
    def __init__(self, workers, variables, elements):
        addresses = free_addresses(1 + workers)
        cluster = {"ps": addresses[:1], "worker": addresses[1:]}
        context = multiprocessing.get_context("spawn")
        self.steps = context.Queue()
        self.processes = [
            context.Process(target=run_task, daemon=True,
                            args=(job, i, cluster, variables, elements, self.steps))
            for job in cluster for i in range(len(cluster[job]))
        ]
        for process in self.processes:
            process.start()

    def signal(self, number):
        for process in self.processes:
            if process.is_alive():
                os.kill(process.pid, number)

    def hear(self):
        """What worker 0 says next."""
        for _ in range(START_TIMEOUT_S):
            try:
                return self.steps.get(timeout=1)
            except queue.Empty:
                if not all(process.is_alive() for process in self.processes):
                    break
        raise SystemExit("tensorflow_sync.py: a process of TensorFlow's has ended, or hangs")

    def wait_for_step(self, step):
        """The first step from this one on that worker 0 has seen, and when."""
        while True:
            seen, when = self.hear()
            if seen >= step:
                return seen, when

    def seconds_of(self, count):
        self.signal(signal.SIGCONT)
        now, _ = self.wait_for_step(0)
        # What was queued before the pause is of before it, too.
        while not self.steps.empty():
            now, _ = self.steps.get()
        first, start = self.wait_for_step(now + WARM_UP_STEPS)
        last, end = self.wait_for_step(first + count)
        self.signal(signal.SIGSTOP)
        return (end - start) * count / (last - first)


def main():
    workers, variables, elements = (int(argument) for argument in sys.argv[1:])
    cluster = Cluster(workers, variables, elements)
    try:
        version = cluster.hear()
        cluster.wait_for_step(WARM_UP_STEPS)
        cluster.signal(signal.SIGSTOP)
        print("TensorFlow", version, flush=True)
        for line in sys.stdin:
            print(cluster.seconds_of(int(line)), flush=True)
    finally:
        cluster.signal(signal.SIGKILL)


if __name__ == "__main__":
    main()
