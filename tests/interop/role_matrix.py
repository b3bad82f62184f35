"""What each role may call, asked of a running process with stock gRPC and credentials made by Python's own hmac.

    role_matrix.py SOURCE_ROOT ADDRESS TOKEN_FILE

Prints JSON: {"matrix": {caller: [methods that are not refused]}, "speakers": {case: code}, "forged": {case: code}}.
Bodies of the matrix cannot be decoded: a refusal came before, and what is allowed has no effect.
"""
import hmac
import json
import sys
import tempfile

import grpc

import protos

TIMEOUT = 20
REFUSED = ("UNAUTHENTICATED", "PERMISSION_DENIED")
CALLERS = ["", "chief", "ps/0", "worker", "worker/0", "worker/1", "reader"]
GRPC_METHODS = [
    "/grpc.health.v1.Health/Check",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    "/grpc.channelz.v1.Channelz/GetServers",
    "/lockstep.ParameterServer/Unknown",
    "/lockstep.Unknown/GetStatus",
    "/",
]


def credential(secret, caller):
    return f"{caller}:{hmac.new(secret, caller.encode(), 'sha256').hexdigest()}"


def code(channel, path, body, authorization):
    metadata = [("authorization", value) for value in authorization]
    try:
        channel.unary_unary(path)(body, timeout=TIMEOUT, metadata=metadata)
        return "OK"
    except grpc.RpcError as error:
        return error.code().name


def main():
    source_root, address, token_file = sys.argv[1:]
    with open(token_file, encoding="ascii") as file:
        secret = bytes.fromhex(file.read().strip().removeprefix("job:"))
    with tempfile.TemporaryDirectory() as out:
        loaded = protos.load(source_root, out, "ps", "chief", "peer", "status")
    ps_pb2, chief_pb2, peer_pb2 = (messages for messages, _ in loaded[:3])
    methods = GRPC_METHODS + [
        f"/{service.full_name}/{method.name}"
        for messages, _ in loaded
        for service in messages.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ]
    as_worker_1 = ["Bearer " + credential(secret, "worker/1")]
    with grpc.insecure_channel(address) as channel:
        matrix = {
            caller: sorted(
                method
                for method in methods
                if code(channel, method, b"\xff\xff", ["Bearer " + credential(secret, caller)] if caller else [])
                not in REFUSED
            )
            for caller in CALLERS
        }
        speakers = {
            f"{method} for worker {worker}": code(channel, method, request.SerializeToString(), as_worker_1)
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
                "/lockstep.Chief/Heartbeat": chief_pb2.HeartbeatRequest(worker=worker, incarnation=5),
                "/lockstep.Chief/ReportError": chief_pb2.ReportErrorRequest(worker=worker, incarnation=5),
                "/lockstep.Peer/Probe": peer_pb2.ProbeRequest(sender={"worker": worker, "incarnation": 5}),
                "/lockstep.Peer/Send": peer_pb2.SendRequest(sender={"worker": worker, "incarnation": 5}),
            }.items()
        }
        good = credential(secret, "chief")
        forged = {
            name: code(channel, "/lockstep.ParameterServer/GetView", b"", authorization)
            for name, authorization in {
                "no scheme": [good],
                "another scheme": ["Basic " + good],
                "no code": ["Bearer chief:"],
                "a worker's code": ["Bearer chief:" + credential(secret, "worker/1").split(":")[1]],
                "another job's": ["Bearer " + credential(bytes(32), "chief")],
                "upper case": ["Bearer chief:" + good.split(":")[1].upper()],
                "the token itself": ["Bearer job:" + secret.hex()],
                "long": ["Bearer chief:" + "0" * 4000],
                "a good one second": ["Bearer chief:0", "Bearer " + good],
                "a good one first": ["Bearer " + good, "Bearer chief:0"],
            }.items()
        }
    print(json.dumps({"matrix": matrix, "speakers": speakers, "forged": forged}))


main()
