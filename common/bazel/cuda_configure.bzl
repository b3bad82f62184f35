"""@local_cuda: the CUDA toolkit of this machine, or an empty twin of it.

defs.bzl has HAVE_CUDA, CUDA_HOME and CUDA_VERSION, which is 0 without a toolkit; //:headers has the toolkit's headers.
CUDA_COMPILER is a checksum of nvcc and the programs that it calls, taken when Bazel's server starts: a toolkit that was
upgraded in its place compiles the kernels again.
A toolkit is nvcc with its headers. HAVE_CUBLAS_LT, HAVE_CUDNN, HAVE_NCCL and HAVE_STUB_DRIVER say what else it has, which
tests use: //:stub_driver is its stand-in for the driver. No program is linked from the toolkit: it opens libraries of CUDA at
run time. Without a toolkit both targets are empty, so that a CPU build works everywhere.
The search order is CUDA_HOME, then /usr/local/cuda (change it with --repo_env=CUDA_HOME=...). `./lockstep` sets
CUDA_HOME where `./lockstep build --cuda` has installed a toolkit.
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
filegroup(name = "stub_driver", srcs = glob(["libcuda_stub.so"]), visibility = ["//visibility:public"])
"""

# The first one that compiles C++20.
_LEAST_VERSION = 12000

_COMPILER = [
    "bin/nvcc",
    "bin/nvcc.profile",
    "bin/cudafe++",
    "bin/ptxas",
    "bin/fatbinary",
    "nvvm/bin/cicc",
    "nvvm/libdevice/libdevice.10.bc",
]

def _version(ctx, home):
    header = ctx.read(home + "/include/cuda_runtime_api.h")
    for line in header.split("\n"):
        if line.startswith("#define CUDART_VERSION"):
            return int(line.split(" ")[-1])
    return 0

def _has(ctx, home, *files):
    return all([ctx.path(home + "/" + file).exists for file in files])

def _compiler(ctx, home):
    files = [home + "/" + file for file in _COMPILER if _has(ctx, home, file)]
    result = ctx.execute(["sh", "-c", "cat \"$@\" | sha256sum", "sh"] + files)
    if result.return_code != 0 or result.stderr:
        fail("CUDA's compiler in %s cannot be read: %s" % (home, result.stderr))
    return result.stdout.split(" ")[0]

def _cuda_impl(ctx):
    home = ctx.os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    version = _version(ctx, home) if _has(ctx, home, "bin/nvcc", "include/cuda_runtime_api.h") else 0
    if version < _LEAST_VERSION:
        version = 0
    cublas_lt = "lib64/libcublasLt.so.%d" % (version // 1000)
    have_stub_driver = version > 0 and _has(ctx, home, "lib64/stubs/libcuda.so")
    ctx.file("WORKSPACE", "workspace(name = \"{}\")\n".format(ctx.name))
    ctx.file("BUILD", _FOUND if version > 0 else _EMPTY)
    if version > 0:
        ctx.symlink(home + "/include", "include")
    if have_stub_driver:
        ctx.symlink(home + "/lib64/stubs/libcuda.so", "libcuda_stub.so")
    definitions = {
        "HAVE_CUDA": version > 0,
        "HAVE_CUBLAS_LT": version > 0 and _has(ctx, home, "include/cublasLt.h", cublas_lt),
        "HAVE_CUDNN": version > 0 and _has(ctx, home, "include/cudnn.h", "lib64/libcudnn.so.9"),
        "HAVE_NCCL": version > 0 and _has(ctx, home, "include/nccl.h", "lib64/libnccl.so.2"),
        "HAVE_STUB_DRIVER": have_stub_driver,
        "CUDA_HOME": home,
        "CUDA_VERSION": version,
        "CUDA_COMPILER": _compiler(ctx, home) if version > 0 else "",
    }
    ctx.file("defs.bzl", "".join(["%s = %r\n" % definition for definition in definitions.items()]))

cuda_configure = repository_rule(
    implementation = _cuda_impl,
    local = True,
    environ = ["CUDA_HOME"],
)
