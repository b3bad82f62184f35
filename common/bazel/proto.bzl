"""proto_cc: C++ from a .proto file with the system's protoc, and the gRPC stubs as a library of their own.

The split keeps gRPC's headers (seconds per translation unit) out of everything that only needs messages.
"""

load("@rules_cc//cc:defs.bzl", "cc_library")

# Generated code is much to compile, and no tensor passes through it.
_COPTS = ["-O1"]

def proto_cc(name, src, deps = [], grpc = False):
    """:<name> has the messages; with grpc = True, :<name>_grpc has the service stubs. deps are other proto_cc names."""
    base = src[:-len(".proto")]
    closure = [":" + d + "_src" for d in deps]
    native.filegroup(name = name + "_src", srcs = [src] + closure, visibility = ["//visibility:public"])
    native.genrule(
        name = name + "_gen",
        srcs = [":" + name + "_src"],
        outs = [base + ".pb.h", base + ".pb.cc"],
        cmd = "protoc -I. --cpp_out=$(GENDIR) proto/" + src,
        message = "Generating",
    )
    cc_library(
        name = name,
        srcs = [base + ".pb.cc"],
        copts = _COPTS,
        linkstatic = True,
        hdrs = [base + ".pb.h"],
        deps = ["@system//:protobuf"] + [":" + d for d in deps],
        visibility = ["//visibility:public"],
    )
    if not grpc:
        return
    native.genrule(
        name = name + "_grpc_gen",
        srcs = [":" + name + "_src"],
        outs = [base + ".grpc.pb.h", base + ".grpc.pb.cc"],
        cmd = "protoc -I. --plugin=protoc-gen-grpc=$$(which grpc_cpp_plugin) --grpc_out=$(GENDIR) proto/" + src,
        message = "Generating",
    )
    cc_library(
        name = name + "_grpc",
        srcs = [base + ".grpc.pb.cc"],
        copts = _COPTS,
        linkstatic = True,
        hdrs = [base + ".grpc.pb.h"],
        deps = [":" + name, "@system//:grpc"] + [":" + d for d in deps],
        visibility = ["//visibility:public"],
    )
