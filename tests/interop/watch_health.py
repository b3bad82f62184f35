"""Watches the health of a chief with stock gRPC until the chief has ended, which this script asks of it.

    watch_health.py SOURCE_ROOT ADDRESS

Prints JSON: {name: {"statuses": [...], "end": code}} for the services "", "ready" and "nobody".
"""
import json
import sys
import tempfile
import threading

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

import protos

TIMEOUT = 60


def name_of(response):
    return health_pb2.HealthCheckResponse.ServingStatus.Name(response.status)


def watch(call, heard):
    try:
        for response in call:
            heard["statuses"].append(name_of(response))
            heard["first"].set()
        heard["end"] = "OK"
    except grpc.RpcError as error:
        heard["end"] = error.code().name


def main():
    source_root, address = sys.argv[1:]
    with tempfile.TemporaryDirectory() as out:
        [(messages, services)] = protos.load(source_root, out, "job_control")
    seen = {name: {"statuses": [], "first": threading.Event()} for name in ("", "ready", "nobody")}
    with grpc.insecure_channel(address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        threads = []
        for name, heard in seen.items():
            call = health.Watch(health_pb2.HealthCheckRequest(service=name), timeout=TIMEOUT)
            threads.append(threading.Thread(target=watch, args=(call, heard)))
            threads[-1].start()
        for heard in seen.values():
            heard["first"].wait(TIMEOUT)
        services.JobControlStub(channel).Stop(messages.StopRequest(), timeout=TIMEOUT)
        for thread in threads:
            thread.join()
    print(json.dumps({name: {"statuses": heard["statuses"], "end": heard["end"]} for name, heard in seen.items()}))


main()
