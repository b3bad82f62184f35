"""Processes of TensorFlow that train together, as a peer for the benchmark."""

import multiprocessing
import os
import queue
import signal
import socket

START_TIMEOUT_S = 120


def free_addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    for sock in sockets:
        sock.bind(("127.0.0.1", 0))
    addresses = ["127.0.0.1:%d" % sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return addresses


class Cluster:
    """One process for each tuple of arguments; all of them get the queue `said` as their last one."""

    def __init__(self, target, arguments):
        context = multiprocessing.get_context("spawn")
        self.said = context.Queue()
        self.processes = [
            context.Process(target=target, daemon=True, args=(*of_one, self.said)) for of_one in arguments
        ]
        for process in self.processes:
            process.start()

    def signal(self, number):
        for process in self.processes:
            if process.is_alive():
                os.kill(process.pid, number)

    def hear(self):
        """What a process says next."""
        for _ in range(START_TIMEOUT_S):
            try:
                return self.said.get(timeout=1)
            except queue.Empty:
                if not all(process.is_alive() for process in self.processes):
                    break
        raise SystemExit("a process of TensorFlow's has ended, or hangs")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.signal(signal.SIGKILL)
