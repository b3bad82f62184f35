"""Ends a job through its chief with stock gRPC, as an operator; a reader tries before.

    stop_job.py SOURCE_ROOT ADDRESS TOKEN_FILE

Prints JSON: {"reader": code, "operator": the fields of StopReply}.
"""
import json
import sys
import tempfile

import grpc

import credentials
import protos

TIMEOUT = 60


def main():
    source_root, address, token_file = sys.argv[1:]
    secret = credentials.read_secret(token_file)
    with tempfile.TemporaryDirectory() as out:
        [(messages, services)] = protos.load(source_root, out, "job_control")
    with grpc.insecure_channel(address) as channel:
        stub = services.JobControlStub(channel)

        def stop(caller):
            metadata = [("authorization", "Bearer " + credentials.credential(secret, caller))]
            return stub.Stop(messages.StopRequest(), timeout=TIMEOUT, metadata=metadata)

        try:
            stop("reader")
            reader = "OK"
        except grpc.RpcError as error:
            reader = error.code().name
        reply = stop("operator")
    fields = {field.name: getattr(reply, field.name) for field in reply.DESCRIPTOR.fields}
    print(json.dumps({"reader": reader, "operator": fields}))


main()
