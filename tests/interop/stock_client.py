"""What a stock Python gRPC client sees of a running process: health, reflection and status.

    stock_client.py SOURCE_ROOT ADDRESS

Prints JSON: {"health": {"": ..., "ready": ...}, "services": {name: [methods]}, "status": {...}}.
"""
import json
import sys
import tempfile

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

import protos


def main():
    source_root, address = sys.argv[1:]
    with tempfile.TemporaryDirectory() as out:
        ((status_pb2, status_pb2_grpc),) = protos.load(source_root, out, "status")
    with grpc.insecure_channel(address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        healthy = {
            name: health_pb2.HealthCheckResponse.ServingStatus.Name(
                health.Check(health_pb2.HealthCheckRequest(service=name), timeout=10).status
            )
            for name in ("", "ready")
        }
        reflection = ProtoReflectionDescriptorDatabase(channel)
        pool = DescriptorPool(reflection)
        services = {
            name: sorted(method.name for method in pool.FindServiceByName(name).methods)
            for name in reflection.get_services()
            if name.startswith("lockstep.")
        }
        status = status_pb2_grpc.StatusServiceStub(channel).GetStatus(status_pb2.GetStatusRequest(), timeout=10)
    print(json.dumps({
        "health": healthy,
        "services": services,
        "status": json_format.MessageToDict(status, preserving_proto_field_name=True),
    }))


main()
