"""Accumulators under random pushes, takes that wait, changes of the step, and wrong input."""
import threading
import time

import numpy as np

from .draw import chance, normal, plain, rows
from .tf1 import DTYPES, session, tf

_CODES = {tf.errors.InvalidArgumentError: "INVALID_ARGUMENT", tf.errors.CancelledError: "CANCELLED"}
_MOST_WAITING = 3
# A take says that it is about to be queued, not that it has been: it gets so long in between.
_PATIENCE = 0.03
# What has been the same at so many looks in a row, so far apart, will stay so.
_LOOKS = 4
_APART = 0.02


def _reason(message):
    """The line that says what is wrong, of those with which TensorFlow surrounds it."""
    lines = [line.strip() for line in message.split("\n") if line.strip()]
    node = next((i for i, line in enumerate(lines) if line.startswith("[[")), len(lines))
    return lines[max(0, node - 1)][:200]


def _failure(error):
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), type(error).__name__)
    return {"code": code, "message": _reason(error.message)}


class _Draw:
    """What the script is about: gradients have the shape [rows] + tail."""

    def __init__(self, rng, sparse):
        self.sparse = sparse
        self.dtype = str(rng.choice(["float16", "float32", "float32", "float64"]))
        self.reduction = str(rng.choice(["MEAN", "SUM"]))
        self.tail = [int(n) for n in rng.integers(1, 4, int(rng.integers(1, 3)))]
        self.rows = int(rng.integers(2, 7))
        self.declared = None
        if not chance(rng, 0.3):
            self.declared = [] if sparse and chance(rng, 0.5) else [self.rows] + self.tail


class _Graph:
    """The ops of the script, in the default graph."""

    def __init__(self, draw):
        self.local_step = tf.placeholder(tf.int64, [])
        self.step = tf.placeholder(tf.int64, [])
        self.num_required = tf.placeholder(tf.int32, [])
        self.dense_shape = tf.placeholder(tf.int64, [None])
        self.indices = tf.placeholder(tf.int64, None)
        self.values = tf.placeholder(DTYPES[draw.dtype], None)
        kind = tf.SparseConditionalAccumulator if draw.sparse else tf.ConditionalAccumulator
        accumulator = kind(DTYPES[draw.dtype], shape=draw.declared, reduction_type=draw.reduction)
        if draw.sparse:
            self.push = accumulator.apply_grad(self.indices, self.values, local_step=self.local_step)
            self.push_with_shape = accumulator.apply_grad(
                self.indices, self.values, grad_shape=self.dense_shape, local_step=self.local_step
            )
        else:
            self.push = accumulator.apply_grad(self.values, local_step=self.local_step)
        self.is_taking = threading.Event()
        with tf.control_dependencies([tf.numpy_function(self._tell, [], tf.bool)]):
            self.take = accumulator.take_grad(self.num_required)
        self.set_step = accumulator.set_global_step(self.step)
        self.num_accumulated = accumulator.num_accumulated()

    def _tell(self):
        self.is_taking.set()
        return True


class _Takes:
    """Takes under way, each in a thread of its own."""

    def __init__(self, running, ops):
        self._running = running
        self._ops = ops
        self._lock = threading.Lock()
        self._results = {}
        self.num_waiting = 0

    def start(self, number, num_required):
        self.num_waiting += 1
        self._ops.is_taking.clear()
        threading.Thread(target=self._run, args=(number, num_required), daemon=True).start()
        self._ops.is_taking.wait()
        time.sleep(_PATIENCE)

    def _run(self, number, num_required):
        try:
            result = self._running.run(self._ops.take, {self._ops.num_required: num_required})
        except tf.errors.OpError as error:
            result = error
        with self._lock:
            self._results[number] = result

    def num_ended(self):
        with self._lock:
            return len(self._results)

    def collect(self):
        """[(number, result)] of those that have ended since the last call, by their numbers."""
        with self._lock:
            results, self._results = self._results, {}
        self.num_waiting -= len(results)
        return sorted(results.items(), key=lambda item: item[0])


class _Recording:
    def __init__(self, rng, draw, running, ops):
        self._rng = rng
        self._draw = draw
        self._running = running
        self._ops = ops
        self._takes = _Takes(running, ops)
        self._step = 0  # about where the accumulator is, to draw local steps around it
        self.log = []

    def go_on(self, number):
        choice = self._rng.random()
        if choice < 0.22 and self._takes.num_waiting < _MOST_WAITING:
            self._take(number)
        elif choice < 0.30:
            self._set_step()
        else:
            self._push()

    def _look(self):
        return int(self._running.run(self._ops.num_accumulated)), self._takes.num_ended()

    def _settle(self, line):
        now, equal = self._look(), 1
        while equal < _LOOKS:
            time.sleep(_APART)
            before, now = now, self._look()
            equal = equal + 1 if now == before else 1
        line["num_accumulated"] = now[0]
        line["completed"] = []
        for number, result in self._takes.collect():
            if isinstance(result, Exception):
                line["error"] = _failure(result)
            else:
                line["completed"].append({"id": number, **self._taken(result)})
        self._step += len(line["completed"])
        self.log.append(line)

    def _taken(self, result):
        if not self._draw.sparse:
            return {"values": plain(result)}
        indices, values, dense_shape = result
        return {"indices": plain(indices), "values": plain(values), "dense_shape": plain(dense_shape)}

    def _take(self, number):
        rng = self._rng
        num_required = int(rng.integers(1, 4)) if chance(rng, 0.9) else int(rng.integers(-1, 1))
        self._takes.start(number, num_required)
        self._settle({"op": "take", "id": number, "num_required": num_required, "error": None})

    def _set_step(self):
        self._step = max(0, self._step + int(self._rng.integers(-1, 3)))
        self._running.run(self._ops.set_step, {self._ops.step: self._step})
        self._settle({"op": "set_step", "step": self._step})

    def _push(self):
        rng, ops = self._rng, self._ops
        local_step = self._step + (int(rng.integers(-2, 2)) if chance(rng, 0.4) else 0)
        line = {"op": "push", "local_step": local_step, "error": None}
        feed = {ops.local_step: local_step}
        is_wrong = chance(rng, 0.12)
        op = self._sparse(is_wrong, line, feed) if self._draw.sparse else self._dense(is_wrong, feed)
        line["values"] = plain(feed[ops.values])
        line["values_shape"] = list(feed[ops.values].shape)
        try:
            self._running.run(op, feed)
        except tf.errors.InvalidArgumentError as error:
            line["error"] = _failure(error)
        self._settle(line)

    def _dense(self, is_wrong, feed):
        shape = [self._draw.rows] + self._draw.tail
        if is_wrong:
            shape[-1] += 1
        feed[self._ops.values] = normal(self._rng, shape, self._draw.dtype)
        return self._ops.push

    def _sparse(self, is_wrong, line, feed):
        rng, draw, ops = self._rng, self._draw, self._ops
        indices = rows(rng, draw.rows)
        if chance(rng, 0.05):
            indices = indices[:0]
        values = normal(rng, [len(indices)] + draw.tail, draw.dtype)
        if is_wrong:
            indices, values = self._spoil(indices, values)
        feed[ops.indices], feed[ops.values] = indices, values
        line["indices"], line["indices_shape"] = indices.tolist(), list(indices.shape)
        if not chance(rng, 0.3):
            return ops.push
        feed[ops.dense_shape] = line["dense_shape"] = [draw.rows] + draw.tail
        return ops.push_with_shape

    def _spoil(self, indices, values):
        rng, draw = self._rng, self._draw
        mistake = int(rng.integers(0, 4))
        if mistake == 0:  # a row less than indices, or one more
            return indices, values[:-1] if len(values) else np.zeros([1] + draw.tail, draw.dtype)
        if mistake == 1:  # a row that a declared shape does not have
            indices = np.append(indices, draw.rows + int(rng.integers(0, 3)))
            return indices, normal(rng, [len(indices)] + draw.tail, draw.dtype)
        if mistake == 2:  # wider rows
            return indices, normal(rng, [len(indices)] + [n + 1 for n in draw.tail], draw.dtype)
        return indices.reshape([-1, 1]), values


def record_accumulator(rng, sparse):
    draw = _Draw(rng, sparse)
    with tf.Graph().as_default() as graph:
        ops = _Graph(draw)
        with session(graph) as running:
            recording = _Recording(rng, draw, running, ops)
            for number in range(int(rng.integers(10, 22))):
                recording.go_on(number)
    return {
        "kind": "accumulator",
        "sparse": sparse,
        "dtype": draw.dtype,
        "reduction": draw.reduction,
        "declared_shape": draw.declared,
        "log": recording.log,
    }
