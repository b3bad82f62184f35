"""The task with TensorFlow's SyncReplicasOptimizer: a ps and two workers, the first of them chief, on real servers."""
import threading

from recorder.cluster import cluster_spec
from recorder.tf1 import tf

from .task import CLASSES, HIDDEN, OPTIMIZERS, PIXELS, REPLICAS, STEPS, VARIABLES

_MAKE = {
    "sgd": tf.train.GradientDescentOptimizer,
    "momentum": lambda rate: tf.train.MomentumOptimizer(rate, 0.9),
    "adam": tf.train.AdamOptimizer,
}


class _Replica:
    """One worker's graph; worker 0's has the chief's ops too."""

    def __init__(self, spec, number, initial, name):
        self.graph = tf.Graph()
        device = f"/job:worker/task:{number}"
        with self.graph.as_default(), tf.device(tf.train.replica_device_setter(cluster=spec, worker_device=device)):
            step = tf.train.get_or_create_global_step()
            # Ref variables, as in the time of parameter servers.
            self.variables = {
                key: tf.get_variable(key, initializer=initial[key], use_resource=False) for key in VARIABLES
            }
            with tf.device(device):
                self.images = tf.placeholder(tf.float32, [None, PIXELS])
                self.labels = tf.placeholder(tf.int64, [None])
                self.loss = self._network()
            optimizer = tf.train.SyncReplicasOptimizer(_MAKE[name](OPTIMIZERS[name][1]), REPLICAS, REPLICAS)
            self.train = optimizer.minimize(self.loss, global_step=step)
            self.initialize = tf.global_variables_initializer()
            self.initialize_local = tf.local_variables_initializer()
            self.start = optimizer.chief_init_op if number == 0 else optimizer.local_step_init_op
            if number == 0:
                # No token at the start: a step takes one gradient of each replica, from the first one on.
                self.put_tokens = optimizer.get_init_tokens_op(0)
                self.close_step = optimizer.get_chief_queue_runner().enqueue_ops[0]

    def _network(self):
        v = self.variables
        hidden = tf.nn.relu(tf.matmul(self.images, v["hidden/kernel"]) + v["hidden/bias"])
        scores = tf.matmul(hidden, v["scores/kernel"]) + v["scores/bias"]
        assert hidden.shape[1] == HIDDEN and scores.shape[1] == CLASSES
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.labels, logits=scores))


def _train_replica(running, replica, number, digits, losses):
    for step in range(STEPS):
        images, labels = digits.batch(step, number)
        feed = {replica.images: images, replica.labels: labels}
        loss, _ = running.run([replica.loss, replica.train], feed)
        losses[number].append(float(loss))


def train(digits, initial, name):
    """(the loss of every step, the mean over the replicas; the final values)"""
    spec = cluster_spec(REPLICAS)
    servers = [tf.train.Server(spec, "ps", 0)] + [tf.train.Server(spec, "worker", i) for i in range(REPLICAS)]
    replicas = [_Replica(spec, number, initial, name) for number in range(REPLICAS)]

    def session(number):
        filters = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{number}"])
        return tf.Session(servers[number + 1].target, graph=replicas[number].graph, config=filters)

    sessions = [session(number) for number in range(REPLICAS)]
    sessions[0].run(replicas[0].initialize)
    for running, replica in zip(sessions, replicas):
        running.run(replica.initialize_local)
        running.run(replica.start)
    sessions[0].run(replicas[0].put_tokens)

    def close_steps(running):
        for _ in range(STEPS):
            running.run(replicas[0].close_step)

    losses = [[] for _ in range(REPLICAS)]
    threads = [threading.Thread(target=close_steps, args=(session(0),), daemon=True)]
    for number, (running, replica) in enumerate(zip(sessions, replicas)):
        arguments = (running, replica, number, digits, losses)
        threads.append(threading.Thread(target=_train_replica, args=arguments, daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    values = {key: sessions[0].run(variable) for key, variable in replicas[0].variables.items()}
    return [sum(step) / REPLICAS for step in zip(*losses)], values
