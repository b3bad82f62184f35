"""cuda_library: the kernels of .cu files, compiled by nvcc and held by the program as bytes for the driver to load.

The program is linked from no library of CUDA. Where there is no nvcc the bytes are empty and the same program is linked.
rules_cuda would need a newer Bazel and the network.
"""

load("@local_cuda//:defs.bzl", "CUDA_COMPILER", "CUDA_HOME", "HAVE_CUDA")
load("//common/bazel:cc.bzl", "cc_library")

# Code for A100 and H100, and what the driver compiles for later ones. 8.6 and 8.9 run the code for 8.0.
_TARGETS = [
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=sm_90",
    "-gencode=arch=compute_90,code=compute_90",
]

# Like the host's code: C++20, warnings are errors, no fused multiply-add. Kernels may call constexpr functions of the
# standard library. Registers that do not fit are a warning, too.
_OPTIONS = [
    "-fatbin",
    "-std=c++20",
    "-O3",
    "--fmad=false",
    "--expt-relaxed-constexpr",
    "-Werror=all-warnings",
    "-Xcompiler=-Wall,-Wextra,-Werror",
    "-Xptxas=--warn-on-spills,--warning-as-error",
    "--resource-usage",
    "-I.",
]

_ASSEMBLY = """.section .rodata
.balign 64
.globl {symbol}
{symbol}:
{bytes}
.byte 0
.section .note.GNU-stack,"",@progbits
"""

def _compiled_kernels_impl(ctx):
    assembly = ctx.actions.declare_file(ctx.attr.name + ".S")
    if not HAVE_CUDA:
        ctx.actions.write(assembly, _ASSEMBLY.format(symbol = ctx.attr.symbol, bytes = ""))
        return [DefaultInfo(files = depset([assembly])), OutputGroupInfo(fatbin = depset(), report = depset())]
    unit = ctx.actions.declare_file(ctx.attr.name + ".cu")
    ctx.actions.write(unit, "".join(["#include \"%s\"\n" % source.short_path for source in ctx.files.srcs]))
    fatbin = ctx.actions.declare_file(ctx.attr.name + ".fatbin")
    report = ctx.actions.declare_file(ctx.attr.name + ".ptxas")
    headers = [dep[CcInfo].compilation_context.headers for dep in ctx.attr.deps]
    ctx.actions.run_shell(
        inputs = depset([unit] + ctx.files.srcs, transitive = headers),
        outputs = [fatbin, report],
        # What ptxas says of each kernel goes to stderr, as errors do.
        command = "report=$1; shift 2; \"$@\" 2>\"$report\" || { cat \"$report\" >&2; exit 1; }",
        # Nothing reads the second: another compiler compiles again. Bazel ignores `env` beside the shell's own.
        arguments = [report.path, CUDA_COMPILER, CUDA_HOME + "/bin/nvcc"] + _TARGETS + _OPTIONS + ["-o", fatbin.path, unit.path],
        use_default_shell_env = True,
        mnemonic = "Nvcc",
        progress_message = "Compiling kernels " + ctx.label.name,
    )

    # Bazel looks for what a source includes, and sees no .incbin: with the sum of its bytes this file changes with them.
    text = _ASSEMBLY.format(symbol = ctx.attr.symbol, bytes = ".incbin \"%s\"" % fatbin.path)
    ctx.actions.run_shell(
        inputs = [fatbin],
        outputs = [assembly],
        command = "{ printf '# %s\\n' \"$(sha256sum <\"$1\")\"; printf '%s' \"$3\"; } >\"$2\"",
        arguments = [fatbin.path, assembly.path, text],
        mnemonic = "EmbedKernels",
        progress_message = "Embedding kernels " + ctx.label.name,
    )
    return [
        DefaultInfo(files = depset([assembly])),
        OutputGroupInfo(fatbin = depset([fatbin]), report = depset([report])),
    ]

_compiled_kernels = rule(
    implementation = _compiled_kernels_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "symbol": attr.string(),
    },
)

def cuda_library(name, srcs, symbol, deps = []):
    """The library `name` defines `extern "C" const unsigned char <symbol>[]`, what nvcc -fatbin makes of all srcs.

    Kernels of all srcs are one translation unit. <name>_report has what ptxas says of each: nothing without nvcc.
    """
    _compiled_kernels(name = name + "_assembly", srcs = srcs, symbol = symbol, deps = deps)
    for group in ["fatbin", "report"]:
        native.filegroup(name = name + "_" + group, srcs = [":" + name + "_assembly"], output_group = group)
    cc_library(name = name, srcs = [":" + name + "_assembly"], textual_hdrs = [":" + name + "_fatbin"])
