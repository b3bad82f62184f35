"""What each role may call, asked of a running process with stock gRPC and what proves a role.

    role_matrix.py SOURCE_ROOT ADDRESS TOKEN_FILE    credentials that Python's own hmac makes of the job's token
    role_matrix.py SOURCE_ROOT ADDRESS TLS_FOLDER    the certificates in the folder

Prints JSON: {"matrix": {caller: [methods that are not refused]}, "speakers": {case: code}, "forged": {case: code}}.
Bodies of the matrix cannot be decoded: a refusal came before, and what is allowed has no effect.
"""
import json
import os
import sys
import tempfile

import grpc

import protos
from credentials import credential, read_secret

TIMEOUT = 20
REFUSED = ("UNAUTHENTICATED", "PERMISSION_DENIED")
CALLERS = ["", "chief", "ps/0", "worker/0", "worker/1", "reader", "operator"]
GRPC_METHODS = [
    "/grpc.health.v1.Health/Check",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "/grpc.channelz.v1.Channelz/GetServers",
    "/lockstep.ParameterServer/Unknown",
    "/lockstep.Unknown/GetStatus",
    "/",
]


class Token:
    """Each caller's calls carry a credential, on one connection."""

    callers = CALLERS + ["worker"]

    def __init__(self, path, address):
        self.secret = read_secret(path)
        self.channel = grpc.insecure_channel(address)

    # The way of a caller: its channel, and the values of its calls' metadata.
    def of(self, caller):
        return self.channel, ["Bearer " + credential(self.secret, caller)] if caller else []

    def forged(self):
        good = credential(self.secret, "chief")
        return {
            name: (self.channel, authorization)
            for name, authorization in {
                "no scheme": [good],
                "another scheme": ["Basic " + good],
                "no code": ["Bearer chief:"],
                "a worker's code": ["Bearer chief:" + credential(self.secret, "worker/1").split(":")[1]],
                "another job's": ["Bearer " + credential(bytes(32), "chief")],
                "upper case": ["Bearer chief:" + good.split(":")[1].upper()],
                "the token itself": ["Bearer job:" + self.secret.hex()],
                "long": ["Bearer chief:" + "0" * 4000],
                "a good one second": ["Bearer chief:0", "Bearer " + good],
                "a good one first": ["Bearer " + good, "Bearer chief:0"],
            }.items()
        }


class Certificates:
    """Each caller has connections of its own."""

    callers = CALLERS

    def __init__(self, folder, address):
        with open(os.path.join(folder, "ca.pem"), "rb") as file:
            authority = file.read()
        self.channels = {"": grpc.secure_channel(address, grpc.ssl_channel_credentials(authority))}
        for caller in CALLERS[1:]:
            with open(os.path.join(folder, caller.replace("/", "-") + ".pem"), "rb") as file:
                both = file.read()
            self.channels[caller] = grpc.secure_channel(address, grpc.ssl_channel_credentials(authority, both, both))

    def of(self, caller):
        return self.channels[caller], []

    def forged(self):
        as_chief = ["Bearer " + credential(bytes(32), "chief")]
        return {"nobody says chief": (self.channels[""], as_chief)}


def code(way, path, body):
    channel, authorization = way
    metadata = [("authorization", value) for value in authorization]
    try:
        channel.unary_unary(path)(body, timeout=TIMEOUT, metadata=metadata)
        return "OK"
    except grpc.RpcError as error:
        return error.code().name


def main():
    source_root, address, path = sys.argv[1:]
    access = (Certificates if os.path.isdir(path) else Token)(path, address)
    with tempfile.TemporaryDirectory() as out:
        loaded = protos.load(source_root, out, "ps", "chief", "peer", "status", "job_control")
    ps_pb2, chief_pb2, peer_pb2 = (messages for messages, _ in loaded[:3])
    methods = GRPC_METHODS + [
        f"/{service.full_name}/{method.name}"
        for messages, _ in loaded
        for service in messages.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ]
    matrix = {
        caller: sorted(
            method
            for method in methods
            if code(access.of(caller), method, b"\xff\xff") not in REFUSED
        )
        for caller in access.callers
    }
    speakers = {
        f"{method} for worker {worker}": code(access.of("worker/1"), method, request.SerializeToString())
        for worker in (0, 1)
        for method, request in {
            "/lockstep.ParameterServer/Pull": ps_pb2.PullRequest(worker={"worker": worker, "incarnation": 5}),
            "/lockstep.ParameterServer/Push": ps_pb2.PushRequest(worker={"worker": worker, "incarnation": 5}),
            "/lockstep.ParameterServer/DequeueToken": ps_pb2.DequeueTokenRequest(
                worker={"worker": worker, "incarnation": 5}
            ),
            "/lockstep.ParameterServer/AttachMemory": ps_pb2.AttachMemoryRequest(
                worker={"worker": worker, "incarnation": 5}
            ),
            "/lockstep.ParameterServer/StoreVersion": ps_pb2.StoreVersionRequest(
                worker={"worker": worker, "incarnation": 5}
            ),
            "/lockstep.ParameterServer/Ping": ps_pb2.PingRequest(worker={"worker": worker, "incarnation": 5}),
            "/lockstep.Chief/Heartbeat": chief_pb2.HeartbeatRequest(worker=worker, incarnation=5),
            "/lockstep.Chief/ReportError": chief_pb2.ReportErrorRequest(worker=worker, incarnation=5),
            "/lockstep.Peer/Probe": peer_pb2.ProbeRequest(sender={"worker": worker, "incarnation": 5}),
            "/lockstep.Peer/Send": peer_pb2.SendRequest(sender={"worker": worker, "incarnation": 5}),
        }.items()
    }
    forged = {
        name: code(way, "/lockstep.ParameterServer/GetView", b"") for name, way in access.forged().items()
    }
    print(json.dumps({"matrix": matrix, "speakers": speakers, "forged": forged}))


main()
