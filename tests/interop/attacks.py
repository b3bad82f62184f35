"""What a process of a job can do beyond its role, and anybody without one, with stock gRPC and the certificates in a folder.

    attacks.py SOURCE_ROOT TLS_FOLDER PS CHIEF WORKER CLUSTER_FILE [forever]

PS, CHIEF and WORKER are addresses. The attacker has no certificate, that of a reader, or that of worker 2, whose process does not
run: it registers as such and then sends what no worker sends. Prints JSON: {attack: the code of the answer}. With `forever`: makes
those attacks on the ps that a caller without a role and a worker can repeat, one after another, until it is killed, and prints how
many calls it has made after each round of them.
"""
import itertools
import json
import os
import sys
import tempfile

import grpc

import protos

TIMEOUT = 20
ME = 2
INCARNATION = 77
FORGED = "x\n2026-01-01T00:00:00.000000Z I chief: checkpoint /tmp/forged"
LARGEST = 2**64 - 1


def code(call):
    try:
        call()
        return "OK"
    except grpc.RpcError as error:
        return error.code().name


def canonical(path):
    with open(path, encoding="utf-8") as file:
        spec = json.load(file)
    lines = [f"chief {spec['chief'][0]}"]
    lines += [f"{role} {i} {address}" for role in ("ps", "worker") for i, address in enumerate(spec[role])]
    return "".join(line + "\n" for line in lines)


class Access:
    """Channels to the processes with one certificate, or without."""

    def __init__(self, folder, name, addresses):
        def read(file):
            with open(os.path.join(folder, file + ".pem"), "rb") as opened:
                return opened.read()

        own = (read(name), read(name)) if name else ()
        credentials = grpc.ssl_channel_credentials(read("ca"), *own)
        options = [("grpc.max_send_message_length", -1)]
        self.channels = {role: grpc.secure_channel(to, credentials, options) for role, to in addresses.items()}

    def call(self, role, service, method, request, **options):
        body = request if isinstance(request, bytes) else request.SerializeToString()
        call = self.channels[role].unary_unary(f"/lockstep.{service}/{method}", response_deserializer=None)
        return code(lambda: call(body, timeout=TIMEOUT, **options))


class Attacks:
    def __init__(self, loaded, folder, addresses, cluster):
        self.ps_pb2, self.chief_pb2, self.peer_pb2, self.tensor_pb2, self.status_pb2 = (messages for messages, _ in loaded)
        self.stranger = Access(folder, "", addresses)
        self.reader = Access(folder, "reader", addresses)
        self.worker = Access(folder, f"worker-{ME}", addresses)
        self.cluster = cluster
        self.registration = self.register()

    def version(self):
        call = self.reader.channels["chief"].unary_unary(
            "/lockstep.StatusService/GetStatus", response_deserializer=self.status_pb2.ProcessStatus.FromString
        )
        return call(b"", timeout=TIMEOUT).version

    def register(self):
        """As a worker of the job: until the chief answers that it runs."""
        request = self.chief_pb2.RegisterTaskRequest(
            worker=ME, incarnation=INCARNATION, cluster=self.cluster, version=self.version(), host="attacker", pid=1
        )
        call = self.worker.channels["chief"].unary_unary(
            "/lockstep.Chief/RegisterTask", response_deserializer=self.chief_pb2.RegisterTaskReply.FromString
        )
        for _ in range(100):
            reply = call(request.SerializeToString(), timeout=TIMEOUT)
            if reply.ready:
                return reply
        sys.exit(f"the chief does not admit the attacker: {reply.waiting_for}")

    def identity(self, worker=ME, incarnation=INCARNATION, job=None):
        reply = self.registration
        return self.ps_pb2.WorkerIdentity(
            job=reply.job_id if job is None else job, epoch=reply.epoch, worker=worker, incarnation=incarnation
        )

    def command(self, term=None):
        return self.ps_pb2.Command(job=self.registration.job_id, term=term or self.registration.term + 1, chief=5)

    def trained(self):
        """A dense variable that is trained, and its number."""
        for variable in self.registration.placement.variables:
            if variable.trainable and not variable.sparse:
                return variable.id, variable
        sys.exit("the job has no trained variable")

    def push(self, payload=b"", identity=None, seq=1, **piece):
        number, variable = self.trained()
        size = 4
        for dim in variable.dims:
            size *= dim
        fields = dict(variable=number, dtype=self.tensor_pb2.FLOAT32, dims=variable.dims, offset=0, size=size)
        fields.update(piece)
        request = self.ps_pb2.PushRequest(
            worker=identity or self.identity(), push_seq=seq, local_step=2**40, pieces=[fields], payload=payload
        )
        return self.worker.call("ps", "ParameterServer", "Push", request)

    def pull(self, **fields):
        request = self.ps_pb2.PullRequest(worker=self.identity(), **fields)
        return self.worker.call("ps", "ParameterServer", "Pull", request)

    def without_role(self):
        ps, chief = self.ps_pb2, self.chief_pb2
        orders = {
            "GetView": ps.GetViewRequest(),
            "SetView": ps.SetViewRequest(command=self.command(), epoch=self.registration.epoch),
            "CreateVariables": ps.CreateVariablesRequest(command=self.command(), restore_from="/etc"),
            "Grant": ps.GrantRequest(command=self.command(), step=0, required=1),
            "Save": ps.SaveRequest(command=self.command(), folder="/etc"),
            "Finish": ps.FinishRequest(command=self.command()),
        }
        codes = {f"nobody: {m}": self.stranger.call("ps", "ParameterServer", m, r) for m, r in orders.items()}
        codes["nobody: Push"] = self.stranger.call("ps", "ParameterServer", "Push", ps.PushRequest(worker=self.identity()))
        codes["nobody: ReportError"] = self.stranger.call(
            "chief", "Chief", "ReportError", chief.ReportErrorRequest(worker=0, incarnation=1, message="end")
        )
        codes["nobody: Send"] = self.stranger.call("worker", "Peer", "Send", self.peer_pb2.SendRequest())
        codes["nobody: GetStatus"] = self.stranger.call("chief", "StatusService", "GetStatus", b"")
        codes["reader: SetView"] = self.reader.call("ps", "ParameterServer", "SetView", orders["SetView"])
        codes["reader: Pull"] = self.reader.call("ps", "ParameterServer", "Pull", ps.PullRequest(worker=self.identity()))
        codes["worker: Finish"] = self.worker.call("ps", "ParameterServer", "Finish", orders["Finish"])
        codes["worker: Save"] = self.worker.call("ps", "ParameterServer", "Save", orders["Save"])
        return codes

    def as_worker(self):
        ps = self.ps_pb2
        number, variable = self.trained()
        return {
            "in another's name": self.push(identity=self.identity(worker=0)),
            "an older incarnation": self.push(identity=self.identity(incarnation=1)),
            "another job": self.push(identity=self.identity(job=1)),
            "the last push_seq": self.push(seq=LARGEST),
            "push_seq 0": self.push(seq=0),
            "no such variable": self.push(variable=4_000_000_000),
            "another shape": self.push(dims=[2**40]),
            "a shape of 2^62": self.push(dims=[2**31, 2**31]),
            "bytes beyond the end": self.push(offset=LARGEST, size=2),
            "a size of 2^64 - 1": self.push(size=LARGEST),
            "rows of a dense variable": self.push(rows=2**62),
            "no such dtype": self.push(dtype=99),
            "less payload than it says": self.push(payload=b"x"),
            "no payload": self.push(),
            "a place without memory": self.worker.call(
                "ps",
                "ParameterServer",
                "Push",
                ps.PushRequest(
                    worker=self.identity(),
                    push_seq=1,
                    local_step=2**40,
                    in_memory=True,
                    pieces=[
                        dict(variable=number, dtype=self.tensor_pb2.FLOAT32, dims=variable.dims, size=4, place=2**63)
                    ],
                ),
            ),
            "a million pieces": self.worker.call(
                "ps",
                "ParameterServer",
                "Push",
                ps.PushRequest(worker=self.identity(), push_seq=1, pieces=[dict(variable=number)] * 1_000_000),
            ),
            "no message": self.worker.call("ps", "ParameterServer", "Push", b"\xff" * 1000),
            "17 MiB": self.worker.call("ps", "ParameterServer", "Push", bytes(17 << 20)),
            "compressed": self.worker.call(
                "ps", "ParameterServer", "Pull", bytes(1 << 20), compression=grpc.Compression.Gzip
            ),
            "an unknown slot": self.pull(version=0, pieces=[dict(variable=number)], slot="../../etc/passwd"),
            "rows that are not there": self.pull(version=0, pieces=[dict(variable=number, rows=[-1, 2**62])]),
            "a version below all": self.pull(version=-(2**63), pieces=[dict(variable=number)]),
            "the last dequeue_seq": self.worker.call(
                "ps",
                "ParameterServer",
                "DequeueToken",
                ps.DequeueTokenRequest(worker=self.identity(incarnation=1), dequeue_seq=LARGEST),
            ),
            "a store of what nobody asked for": self.worker.call(
                "ps",
                "ParameterServer",
                "StoreVersion",
                ps.StoreVersionRequest(worker=self.identity(), version=2**40, pieces=[dict(variable=number, size=4)]),
            ),
        }

    def parked(self):
        """2,000 pulls of a version that will never be, all of them cancelled."""
        number, _ = self.trained()
        request = self.ps_pb2.PullRequest(
            worker=self.identity(), version=2**40, pieces=[dict(variable=number)] * 100
        ).SerializeToString()
        call = self.worker.channels["ps"].unary_unary("/lockstep.ParameterServer/Pull")
        calls = [call.future(request, timeout=TIMEOUT) for _ in range(2000)]
        for pull in calls:
            pull.cancel()
        return {"2,000 cancelled pulls": "OK" if any(pull.code().name == "OK" for pull in calls) else "NONE"}

    def at_the_chief(self):
        chief = self.chief_pb2
        job = self.registration.job_id

        def heartbeat(**fields):
            request = chief.HeartbeatRequest(job_id=job, worker=ME, incarnation=INCARNATION, **fields)
            return self.worker.call("chief", "Chief", "Heartbeat", request)

        def register(**fields):
            request = chief.RegisterTaskRequest(worker=ME, incarnation=INCARNATION, version=self.version(), **fields)
            return self.worker.call("chief", "Chief", "RegisterTask", request)

        return {
            # Before the heartbeats: a registration that comes after one is late, and not read.
            "a host with line feeds": register(cluster=self.cluster, host=FORGED),
            "a heartbeat of 1 MiB": heartbeat(waiting_for=FORGED * 20_000),
            "a result of no lease": heartbeat(results=[dict(lease=5)]),
            "many results": heartbeat(results=[dict(lease=i) for i in range(5000)]),
            "a host of 1 MiB": register(cluster=self.cluster, host="x" * (1 << 20)),
            "a cluster of 10 MiB": register(cluster="worker 0 a:1\n" * 800_000, host="h"),
            "no such worker": self.worker.call(
                "chief", "Chief", "RegisterTask", chief.RegisterTaskRequest(worker=ME + 1, incarnation=1)
            ),
            "an error of another": self.worker.call(
                "chief", "Chief", "ReportError", chief.ReportErrorRequest(worker=0, incarnation=1, message=FORGED)
            ),
            "an error of an older incarnation": self.worker.call(
                "chief", "Chief", "ReportError", chief.ReportErrorRequest(worker=ME, incarnation=1, message=FORGED)
            ),
            "sums for a group that is none": self.worker.call(
                "worker", "Peer", "Send", self.peer_pb2.SendRequest(sender=dict(worker=ME), payload=bytes(1 << 20))
            ),
        }


def main():
    source_root, folder, ps, chief, worker, cluster_file, *forever = sys.argv[1:]
    with tempfile.TemporaryDirectory() as out:
        loaded = protos.load(source_root, out, "ps", "chief", "peer", "tensor", "status")
    addresses = {"ps": ps, "chief": chief, "worker": worker}
    attacks = Attacks(loaded, folder, addresses, canonical(cluster_file))
    calls = 0
    for number in itertools.count(1) if forever else ():
        calls += len(attacks.without_role()) + len(attacks.as_worker())
        print(f"round {number}: {calls} calls", flush=True)
    codes = {}
    for group in (attacks.without_role, attacks.as_worker, attacks.parked, attacks.at_the_chief):
        codes.update(group())
    print(json.dumps(codes))


main()
