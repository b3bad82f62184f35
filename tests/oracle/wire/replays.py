"""Scripts of kind training and cluster, told to a parameter server call by call."""
import pathlib
import tempfile

from lockstep_client import Variable

from . import checkpoint, optimizers
from .comparison import flatten

# The ps holds so many gradients of a step at most.
TRAINING_REPLICAS = 64


def _shape(nested):
    shape = []
    while isinstance(nested, list):
        shape.append(len(nested))
        nested = nested[0]
    return shape


def _create(ps, protos, script, variables, folder, **numbers):
    """`variables`: {name: (dtype, shape, flat values)}, from a checkpoint: initializers make only values of their own."""
    tensors = optimizers.first_tensors(script, variables)
    start = checkpoint.write(folder / "ckpt-0", script["optimizer"], tensors)
    sparse = script.get("sparse", False)
    named = {name: Variable(shape, dtype, sparse=sparse) for name, (dtype, shape, _) in variables.items()}
    ps.create(named, optimizers.definition(protos, script), restore_from=str(start), **numbers)


def _gradient(script, entry):
    values = flatten(entry["values"])
    return (entry["indices"], values) if script["sparse"] else values


def replay_training(ps, protos, script, comparison):
    """One worker pushes, and a step is granted where the log applies it. Averages are read from
    saved files, and pulled as slots."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        dtype = script["dtype"]
        variables = {"v": (dtype, script["shape"], flatten(script["initial"]))}
        _create(ps, protos, script, variables, folder, replicas_to_aggregate=1)
        accumulated, step = 0, 0
        for number, entry in enumerate(script["log"]):
            comparison.entry = number
            if entry["op"] == "push":
                verdicts = ps.push(0, entry["local_step"], {"v": _gradient(script, entry)})
                accumulated += verdicts["v"] == "ACCEPTED"
                comparison.equal("num_accumulated", entry["num_accumulated"], accumulated)
                continue
            closed = ps.grant(step, entry["aggregate"], entry["learning_rate"], keep_slots=True)
            closed.result(timeout=10)
            accumulated, step = 0, step + 1
            comparison.equal("global_step", entry["global_step"], ps.global_step())
            comparison.near("variable", dtype, entry["variable"], ps.pull(step, ["v"])["v"])
            if script["sparse"]:
                rows = list(range(script["shape"][0]))[::-1]
                expected = [entry["variable"][row] for row in rows]
                comparison.near("rows", dtype, expected, ps.pull(step, {"v": rows})["v"])
            saved = folder / f"ckpt-{step}"
            file = ps.save(step, saved)
            _, average = checkpoint.read(saved / file).get(optimizers.average_of("v"), (None, []))
            comparison.near("average", dtype, entry["average"], average)
            pulled = ps.pull(step, ["v"], slot=optimizers.AVERAGE)["v"]
            comparison.near("average, pulled", dtype, entry["average"], pulled)
            ps.release(step)


class _Workers:
    def __init__(self, ps, count):
        self._ps = ps
        self.local_step = [0] * count
        self._tokens = {}  # of workers that wait

    def run(self, worker, gradients):
        self._ps.push(worker, self.local_step[worker], gradients)
        self._tokens[worker] = self._ps.dequeue(worker)

    def finished(self, expected):
        """Workers that have a token. Each that is expected to is waited for; nobody else may have got one."""
        for worker in expected:
            if worker in self._tokens:
                self._tokens[worker].result(timeout=10)
        # A call of each waiting worker's connection afterwards: what was answered before it has arrived.
        self._ps.global_step()
        done = sorted(worker for worker, token in self._tokens.items() if token.done())
        for worker in done:
            self.local_step[worker] = self._tokens.pop(worker).result().step
        return done

    def waiting(self):
        return sorted(self._tokens)

    def stop(self):
        for token in self._tokens.values():
            token.cancel()


def replay_cluster(ps, protos, script, comparison):
    """Workers run as the log says, and the chief keeps two steps granted, as a real one does."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {name: ("float32", _shape(value), flatten(value)) for name, value in script["initial"].items()}
        required, rate = script["replicas_to_aggregate"], script["learning_rate"]
        _create(ps, protos, script, variables, pathlib.Path(folder), replicas_to_aggregate=required,
                init_tokens=script["num_init_tokens"])
        workers = _Workers(ps, script["total_num_replicas"])
        granted = [ps.grant(step, required, rate) for step in range(2)]
        for number, entry in enumerate(script["log"]):
            comparison.entry = number
            workers.run(entry["worker"], {name: flatten(value) for name, value in entry["gradients"].items()})
            comparison.equal("finished", entry["finished"], workers.finished(entry["finished"]))
            comparison.equal("waiting", entry["waiting"], workers.waiting())
            comparison.equal("local_step", entry["local_step"], workers.local_step)
            step = ps.global_step()
            comparison.equal("global_step", entry["global_step"], step)
            while len(granted) < step + 2:
                granted.append(ps.grant(len(granted), required, rate))
            for name, value in ps.pull(step, list(variables)).items():
                comparison.near(name, "float32", entry["variables"][name], value)
        workers.stop()


REPLAYS = {"training": replay_training, "cluster": replay_cluster}
