"""SyncReplicasOptimizer itself, on real servers: one ps and some workers, which run one after another."""
import threading
import time

import numpy as np

from .draw import chance, normal, plain, uniform
from .optimizers import MAKE, hyper_parameters
from .ports import free_ports
from .tf1 import tf

SHAPES = {"a": [3], "b": [2, 2]}
_RUNS = 14
# What has been the same for so long will stay so.
_QUIET = 0.15


class _Draw:
    """What the script is about."""

    def __init__(self, rng):
        self.aggregate = int(rng.integers(1, 4))
        self.total = max(1, self.aggregate + int(rng.integers(-1, 3)))
        self.optimizer = str(rng.choice(["sgd", "momentum", "adam"]))
        self.learning_rate = uniform(rng, 0.01, 0.3)
        self.hyper_parameters = hyper_parameters(rng, self.optimizer)
        fewest = max(0, self.aggregate - self.total)
        self.init_tokens = -1 if chance(rng, 0.6) else int(rng.integers(fewest, self.aggregate + 3))
        self.initial = {name: normal(rng, shape, np.float32) for name, shape in SHAPES.items()}


def cluster_spec(workers):
    """One ps and the workers, on ports of this machine that are free now."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(workers + 1)]
    return {"ps": addresses[:1], "worker": addresses[1:]}


class _Worker:
    """One worker's graph; worker 0's has the chief's ops too."""

    def __init__(self, draw, spec, number):
        self.graph = tf.Graph()
        device = f"/job:worker/task:{number}"
        with self.graph.as_default(), tf.device(tf.train.replica_device_setter(cluster=spec, worker_device=device)):
            self.global_step = tf.train.get_or_create_global_step()
            self.variables = {
                name: tf.get_variable(name, initializer=draw.initial[name], use_resource=False) for name in SHAPES
            }
            with tf.device(device):
                self.gradients = {name: tf.placeholder(tf.float32, shape) for name, shape in SHAPES.items()}
            optimizer = tf.train.SyncReplicasOptimizer(
                MAKE[draw.optimizer](draw.learning_rate, **draw.hyper_parameters), draw.aggregate, draw.total
            )
            pairs = [(self.gradients[name], self.variables[name]) for name in SHAPES]
            self.train = optimizer.apply_gradients(pairs, global_step=self.global_step)
            self.local_step = optimizer._local_step  # pylint: disable=protected-access
            self.initialize = tf.global_variables_initializer()
            self.initialize_local = tf.local_variables_initializer()
            self.start = optimizer.chief_init_op if number == 0 else optimizer.local_step_init_op
            if number == 0:
                self.put_tokens = optimizer.get_init_tokens_op(draw.init_tokens)
                self.close_step = optimizer.get_chief_queue_runner().enqueue_ops[0]


class _Cluster:
    def __init__(self, draw):
        spec = cluster_spec(draw.total)
        self._servers = [tf.train.Server(spec, "ps", 0)]
        self._servers += [tf.train.Server(spec, "worker", number) for number in range(draw.total)]
        self.workers = [_Worker(draw, spec, number) for number in range(draw.total)]
        self._sessions = [self._session(number) for number in range(draw.total)]
        self._looks = [self._session(number) for number in range(draw.total)]
        self._lock = threading.Lock()
        self._finished = set()
        self.busy = set()
        self._is_over = threading.Event()
        self._start()

    def _session(self, number):
        filters = ["/job:ps", f"/job:worker/task:{number}"]
        return tf.Session(
            self._servers[number + 1].target,
            graph=self.workers[number].graph,
            config=tf.ConfigProto(device_filters=filters),
        )

    def _start(self):
        chief = self.workers[0]
        self._sessions[0].run(chief.initialize)
        for worker, running in zip(self.workers, self._sessions):
            running.run(worker.initialize_local)
            running.run(worker.start)
        self._sessions[0].run(chief.put_tokens)
        threading.Thread(target=self._close_steps, args=(self._session(0),), daemon=True).start()

    def _close_steps(self, running):
        try:
            while not self._is_over.is_set():
                running.run(self.workers[0].close_step)
        except tf.errors.OpError:
            pass  # the script is over

    def run(self, number, gradients):
        """Starts a training step of the worker and waits until nothing moves any more."""
        worker = self.workers[number]
        feed = {worker.gradients[name]: value for name, value in gradients.items()}
        self.busy.add(number)
        threading.Thread(target=self._train, args=(number, feed), daemon=True).start()
        before, now = None, self._look()
        while now != before:
            time.sleep(_QUIET)
            before, now = now, self._look()
        with self._lock:
            finished, self._finished = sorted(self._finished), set()
        self.busy.difference_update(finished)
        return finished

    def _train(self, number, feed):
        try:
            self._sessions[number].run(self.workers[number].train, feed)
        except tf.errors.OpError:
            return  # the script is over, and nobody looks any more
        with self._lock:
            self._finished.add(number)

    def _look(self):
        with self._lock:
            finished = sorted(self._finished)
        return finished, self.global_step(), self.local_steps()

    def global_step(self):
        return int(self._looks[0].run(self.workers[0].global_step))

    def local_steps(self):
        return [int(look.run(worker.local_step)) for look, worker in zip(self._looks, self.workers)]

    def variables(self):
        chief = self.workers[0]
        return {name: plain(self._looks[0].run(chief.variables[name])) for name in SHAPES}

    def end(self):
        """What waits stays behind: TensorFlow's servers cannot be stopped. The recorder's process ends it."""
        self._is_over.set()


def record_cluster(rng):
    draw = _Draw(rng)
    cluster = _Cluster(draw)
    log = []
    while len(log) < _RUNS and len(cluster.busy) < draw.total:
        idle = [number for number in range(draw.total) if number not in cluster.busy]
        number = int(rng.choice(idle))
        gradients = {name: normal(rng, shape, np.float32) for name, shape in SHAPES.items()}
        finished = cluster.run(number, gradients)
        log.append({
            "op": "run",
            "worker": number,
            "gradients": {name: plain(value) for name, value in gradients.items()},
            "finished": finished,
            "waiting": sorted(cluster.busy),
            "global_step": cluster.global_step(),
            "local_step": cluster.local_steps(),
            "variables": cluster.variables(),
        })
    cluster.end()
    return {
        "kind": "cluster",
        "optimizer": draw.optimizer,
        "hyper_parameters": draw.hyper_parameters,
        "learning_rate": draw.learning_rate,
        "replicas_to_aggregate": draw.aggregate,
        "total_num_replicas": draw.total,
        "num_init_tokens": draw.init_tokens,
        "initial": {name: plain(value) for name, value in draw.initial.items()},
        "log": log,
    }
