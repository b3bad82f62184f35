"""@local_cuda: the CUDA toolkit of this machine, or an empty twin of it.

defs.bzl has HAVE_CUDA, HAVE_CUDNN, CUDA_HOME and CUDA_VERSION, which is 0 without a toolkit; //:headers has the
toolkit's headers and //:stub_driver its stand-in for the driver, for tests. No program is linked from the toolkit: what it needs of CUDA it
opens at run time. Where no toolkit is found both targets are empty, so that a CPU build works everywhere.
The search order is CUDA_HOME, then /usr/local/cuda (change it with --repo_env=CUDA_HOME=...).
"""

_EMPTY = """load("@rules_cc//cc:defs.bzl", "cc_library")
cc_library(name = "headers", visibility = ["//visibility:public"])
filegroup(name = "stub_driver", visibility = ["//visibility:public"])
"""

_FOUND = """load("@rules_cc//cc:defs.bzl", "cc_library")
cc_library(
    name = "headers",
    hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/**"]),
    includes = ["include"],
    visibility = ["//visibility:public"],
)
filegroup(name = "stub_driver", srcs = ["libcuda_stub.so"], visibility = ["//visibility:public"])
"""

# The first one that compiles C++20.
_LEAST_VERSION = 12000

def _version(ctx, home):
    header = ctx.read(home + "/include/cuda_runtime_api.h")
    for line in header.split("\n"):
        if line.startswith("#define CUDART_VERSION"):
            return int(line.split(" ")[-1])
    return 0

def _cuda_impl(ctx):
    home = ctx.os.environ.get("CUDA_HOME", "/usr/local/cuda")
    needed = [home + "/" + file for file in ("bin/nvcc", "include/cuda_runtime_api.h", "lib64/stubs/libcuda.so")]
    version = _version(ctx, home) if all([ctx.path(file).exists for file in needed]) else 0
    ctx.file("WORKSPACE", "workspace(name = \"{}\")\n".format(ctx.name))
    if version >= _LEAST_VERSION:
        ctx.symlink(home + "/include", "include")
        ctx.symlink(home + "/lib64/stubs/libcuda.so", "libcuda_stub.so")
        ctx.file("BUILD", _FOUND)
    else:
        version = 0
        ctx.file("BUILD", _EMPTY)
    cudnn = [home + "/" + file for file in ("include/cudnn.h", "lib64/libcudnn.so.9")]
    ctx.file("defs.bzl", "HAVE_CUDA = {}\nHAVE_CUDNN = {}\nCUDA_HOME = {}\nCUDA_VERSION = {}\n".format(
        version > 0,
        version > 0 and all([ctx.path(file).exists for file in cudnn]),
        repr(home),
        version,
    ))

cuda_configure = repository_rule(
    implementation = _cuda_impl,
    local = True,
    environ = ["CUDA_HOME"],
)
