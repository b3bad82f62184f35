"""@local_cuda: the CUDA toolkit of this machine, or an empty twin of it.

defs.bzl has HAVE_CUDA and CUDA_VERSION; //:cuda is the run-time library with headers. Where no toolkit is
found the library is empty and HAVE_CUDA is False, so that a CPU build works everywhere.
The search order is CUDA_HOME, then /usr/local/cuda (change it with --repo_env=CUDA_HOME=...).
"""

_EMPTY = """load("@rules_cc//cc:defs.bzl", "cc_library")
cc_library(name = "cuda", visibility = ["//visibility:public"])
"""

_FOUND = """load("@rules_cc//cc:defs.bzl", "cc_library")
cc_library(
    name = "cuda",
    hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/**"]),
    includes = ["include"],
    defines = ["LOCKSTEP_HAVE_CUDA=1"],
    srcs = ["libcudart_static.a"],
    linkopts = ["-ldl", "-lrt", "-pthread"],
    visibility = ["//visibility:public"],
)
"""

def _version(ctx, home):
    header = ctx.read(home + "/include/cuda_runtime_api.h")
    for line in header.split("\n"):
        if line.startswith("#define CUDART_VERSION"):
            return int(line.split(" ")[-1])
    return 0

def _cuda_impl(ctx):
    home = ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    found = ctx.path(home + "/include/cuda_runtime_api.h").exists and ctx.path(home + "/lib64/libcudart_static.a").exists
    ctx.file("WORKSPACE", "workspace(name = \"{}\")\n".format(ctx.name))
    if found:
        ctx.symlink(home + "/include", "include")
        # Static: a worker built here also starts on a host that has no toolkit.
        ctx.symlink(home + "/lib64/libcudart_static.a", "libcudart_static.a")
        ctx.file("BUILD", _FOUND)
    else:
        ctx.file("BUILD", _EMPTY)
    ctx.file("defs.bzl", "HAVE_CUDA = {}\nCUDA_VERSION = {}\n".format(found, _version(ctx, home) if found else 0))

cuda_configure = repository_rule(
    implementation = _cuda_impl,
    local = True,
    environ = ["CUDA_HOME"],
)
