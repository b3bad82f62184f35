"""A client of one Lockstep parameter server, from its .proto files and stock gRPC alone.

    protos = load_protos("path/to/lockstep")
    ps = ParameterServer(protos, cluster, workers=2)
    ps.create({"w": Variable([3])}, optimizer, replicas_to_aggregate=2)
    closed = ps.grant(0, required=2, learning_rate=0.1)
    ps.push(worker=0, local_step=0, gradients={"w": [1.0, 2.0, 3.0]})
    ps.push(worker=1, local_step=0, gradients={"w": [3.0, 2.0, 1.0]})
    closed.result()
    ps.pull(version=1, names=["w"])

The ParameterServer plays chief and workers of a job with a single ps, FIFO tokens and whole tensors. Calls
that a broken connection has taken along are sent again, except for the futures. Errors of the server are grpc.RpcError.
"""
import array
import dataclasses
import importlib
import importlib.resources
import json
import math
import pathlib
import sys
import tempfile
import time

import grpc
from grpc_tools import protoc

_SERVICE = "ps"
_DEADLINE = 60  # seconds
_DISK_DEADLINE = 600  # of calls that wait for a disk
_DEADLINES = {"CreateVariables": _DISK_DEADLINE, "Save": _DISK_DEADLINE}
_PATIENCE = 120  # with a server that is not available
_SHARD = 0
_CODES = {"float32": "f", "float64": "d"}  # little-endian machines


def load_protos(source_root):
    """{"ps": (messages, service stubs), "job": ..., "tensor": ...}, generated into a folder that is gone at the end."""
    source_root = pathlib.Path(source_root)
    folder = tempfile.TemporaryDirectory()
    files = [str(path) for path in sorted((source_root / "proto").glob("*.proto"))]
    roots = [f"-I{source_root}", f"-I{importlib.resources.files('grpc_tools') / '_proto'}"]  # the latter: google/protobuf
    options = [f"--python_out={folder.name}", f"--grpc_python_out={folder.name}"]
    if protoc.main(["protoc", *roots, *options, *files]) != 0:
        raise RuntimeError(f"protoc failed on {source_root}/proto")
    sys.path.insert(0, folder.name)
    names = ("job", "ps", "tensor")
    modules = {name: importlib.import_module(f"proto.{name}_pb2") for name in names}
    modules["stubs"] = importlib.import_module("proto.ps_pb2_grpc")
    sys.path.remove(folder.name)
    folder.cleanup()
    return modules


class Cluster:
    """A cluster spec: {"ps": [...], "worker": [...], "chief": [...]}, addresses as host:port."""

    def __init__(self, spec):
        self.ps = spec["ps"]
        self.workers = spec["worker"]
        self.chiefs = spec["chief"]

    @classmethod
    def read(cls, path):
        return cls(json.loads(pathlib.Path(path).read_text()))

    def canonical(self):
        """The text in which two processes compare their specs."""
        lines = [f"chief {self.chiefs[0]}"]
        lines += [f"chief {i} {address}" for i, address in enumerate(self.chiefs) if i > 0]
        lines += [f"ps {i} {address}" for i, address in enumerate(self.ps)]
        lines += [f"worker {i} {address}" for i, address in enumerate(self.workers)]
        return "".join(line + "\n" for line in lines)


@dataclasses.dataclass
class Variable:
    shape: list
    dtype: str = "float32"
    initial: float = 0.0  # of every element, unless the job restores a checkpoint
    sparse: bool = False  # its gradients are (row numbers, values of these rows)

    def pack(self, values):
        return array.array(_CODES[self.dtype], values).tobytes()

    def unpack(self, data):
        return array.array(_CODES[self.dtype], data).tolist()

    def width(self):
        """Elements of a row."""
        return math.prod(self.shape[1:])


class ParameterServer:
    def __init__(self, protos, cluster, workers, job=1, term=1, epoch=0):
        self._protos = protos
        self._cluster = cluster
        self._workers = workers
        self._command = {"job": job, "term": term}
        self.epoch = epoch  # of the newest state; each create() begins another
        self._channel = grpc.insecure_channel(
            cluster.ps[0], options=[("grpc.max_receive_message_length", 16 << 20), ("grpc.enable_http_proxy", 0)]
        )
        self._stub = protos["stubs"].ParameterServerStub(self._channel)

    def close(self):
        self._channel.close()

    # ---- chief ----

    def start_epoch(self):
        """Announces the job's workers and a new state: variables of an earlier epoch are gone."""
        self.epoch += 1
        self._push_seq = [0] * self._workers
        self._dequeue_seq = [0] * self._workers
        members = [{"worker": w, "incarnation": self._incarnation(w)} for w in range(self._workers)]
        return self._chief(
            "SetView", epoch=self.epoch, members=members, shard=_SHARD, cluster=self._cluster.canonical()
        )

    def create(self, variables, optimizer, replicas_to_aggregate, init_tokens=-1, restore_from=""):
        """Creates {name: Variable} in an epoch of its own. `optimizer` is an OptimizerDef."""
        self.start_epoch()
        self._variables = dict(variables)
        self._ids = {name: number for number, name in enumerate(variables)}
        specs = [self._spec(name, variable) for name, variable in variables.items()]
        return self._chief(
            "CreateVariables",
            placement={"variables": specs, "shards": 1},
            optimizer=optimizer,
            token_policy=self._protos["job"].FIFO,
            total_num_replicas=self._workers,
            replicas_to_aggregate=replicas_to_aggregate,
            init_tokens=init_tokens,
            restore_from=restore_from,
        )

    def grant(self, step, required, learning_rate, keep_slots=False):
        """Orders the step and its commit; the future's result comes when the step is over."""
        return self._chief_future(
            "Grant", step=step, required=required, learning_rate=learning_rate, keep_slots=keep_slots, commit=True
        )

    def save(self, version, folder):
        """Writes values and slots of a version that a grant kept; returns the file's name."""
        return self._chief("Save", version=version, folder=str(folder)).file

    def release(self, version):
        return self._chief("ReleaseSnapshot", version=version)

    def global_step(self):
        return self._call("GetView").global_step

    def finish(self):
        """Ends the job: the ps exits."""
        return self._chief("Finish")

    # ---- workers ----

    def push(self, worker, local_step, gradients):
        """One gradient of the worker: {name: values}, or {name: (rows, values)} of a sparse variable, values flat.

        Returns {name: "ACCEPTED" or "STALE"}."""
        self._push_seq[worker] += 1
        pieces, payload = [], b""
        for name, gradient in gradients.items():
            piece, data = self._piece(name, gradient)
            pieces.append(piece)
            payload += data
        reply = self._call(
            "Push",
            worker=self._identity(worker),
            push_seq=self._push_seq[worker],
            local_step=local_step,
            pieces=pieces,
            payload=payload,
        )
        verdict = self._protos["ps"].Verdict.Name
        return {name: verdict(outcome.verdict) for name, outcome in zip(gradients, reply.outcomes)}

    def pull(self, version, names, worker=0, slot=""):
        """{name: values, flat} at the version; waits until there is one.

        With {name: rows} in place of names: these rows alone of each variable, which must be sparse. With a slot, such
        as "momentum": that in place of the values, at a version that a grant with keep_slots kept."""
        rows = names if isinstance(names, dict) else {}
        pieces = [{"variable": self._ids[name], "rows": rows.get(name)} for name in names]
        reply = self._call("Pull", worker=self._identity(worker), version=version, pieces=pieces, slot=slot)
        if reply.version != version:
            raise LookupError(f"version {version} is kept no longer, the newest is {reply.version}")
        values, offset = {}, 0
        for name, piece in zip(names, reply.pieces):
            values[name] = self._variables[name].unpack(reply.payload[offset:offset + piece.size])
            offset += piece.size
        return values

    def dequeue(self, worker):
        """Asks for the token that ends the worker's step; the future's result has it as `step`."""
        self._dequeue_seq[worker] += 1
        request = self._request(
            "DequeueToken", worker=self._identity(worker), dequeue_seq=self._dequeue_seq[worker]
        )
        return self._stub.DequeueToken.future(request)

    # ---- messages ----

    def _incarnation(self, worker):
        return 1000 + worker  # of a process that starts: a random number

    def _identity(self, worker):
        return {
            "job": self._command["job"],
            "epoch": self.epoch,
            "worker": worker,
            "incarnation": self._incarnation(worker),
        }

    def _spec(self, name, variable):
        return {
            "id": self._ids[name],
            "name": name,
            "dtype": self._dtype(variable),
            "dims": variable.shape,
            "shard": _SHARD,
            "trainable": True,
            "sparse": variable.sparse,
            "initializer": {"constant": {"value": variable.initial}},
        }

    def _piece(self, name, gradient):
        variable = self._variables[name]
        piece = {"variable": self._ids[name], "dtype": self._dtype(variable), "dims": variable.shape}
        if variable.sparse:
            rows, values = gradient
            piece["rows"] = len(rows)
            data = array.array("q", rows).tobytes() + variable.pack(values)
        else:
            data = variable.pack(gradient)
        piece["size"] = len(data)
        return piece, data

    def _dtype(self, variable):
        return self._protos["tensor"].DataType.Value(variable.dtype.upper())

    def _request(self, call, **fields):
        return getattr(self._protos[_SERVICE], f"{call}Request")(**fields)

    def _call(self, call, **fields):
        """Every call may be repeated: what is lost with a connection is sent again."""
        request = self._request(call, **fields)
        give_up = time.monotonic() + _PATIENCE
        while True:
            try:
                return getattr(self._stub, call)(
                    request, timeout=_DEADLINES.get(call, _DEADLINE), wait_for_ready=True
                )
            except grpc.RpcError as error:
                if error.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > give_up:
                    raise
                time.sleep(0.1)

    def _chief(self, call, **fields):
        return self._call(call, command=self._command, **fields)

    def _chief_future(self, call, **fields):
        return getattr(self._stub, call).future(self._request(call, command=self._command, **fields))
