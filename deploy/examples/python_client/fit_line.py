"""Fits a line to points through a running parameter server: chief and two workers in one process.

    fit_line.py SOURCE_ROOT CLUSTER_FILE
"""
import sys

import lockstep_client

POINTS = [(x / 4, 3 * x / 4 - 1) for x in range(-4, 4)]
WORKERS = 2
STEPS = 100
RATE = 0.2


def gradient_of(line, points):
    """Mean squared error and its gradient."""
    slope, offset = line
    errors = [(slope * x + offset - y, x) for x, y in points]
    loss = sum(error * error for error, _ in errors) / len(points)
    return loss, [sum(2 * e * x for e, x in errors) / len(points), sum(2 * e for e, _ in errors) / len(points)]


def main():
    source_root, cluster_file = sys.argv[1:]
    protos = lockstep_client.load_protos(source_root)
    ps = lockstep_client.ParameterServer(protos, lockstep_client.Cluster.read(cluster_file), WORKERS)
    optimizer = protos["job"].OptimizerDef(momentum={"momentum": 0.5})
    # Without initial tokens the replicas run in lockstep from the first step on.
    ps.create({"line": lockstep_client.Variable([2])}, optimizer, replicas_to_aggregate=WORKERS, init_tokens=0)
    step = 0
    while step < STEPS:
        closed = ps.grant(step, required=WORKERS, learning_rate=RATE)
        line = ps.pull(step, ["line"])["line"]
        losses = []
        for worker in range(WORKERS):
            loss, gradient = gradient_of(line, POINTS[worker::WORKERS])
            ps.push(worker, step, {"line": gradient})
            losses.append(loss)
        tokens = [ps.dequeue(worker) for worker in range(WORKERS)]
        closed.result()
        if step % 10 == 0:
            print(f"step {step}: loss {sum(losses) / WORKERS:.3g}")
        step = tokens[0].result().step
    slope, offset = ps.pull(STEPS, ["line"])["line"]
    print(f"y = {slope:.4f} x + {offset:.4f}")
    ps.finish()
    ps.close()


if __name__ == "__main__":
    main()
