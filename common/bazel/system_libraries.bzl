"""@system: one cc_library per library that the distribution provides.

Headers live in /usr/include, which the sandbox shows; only link options and defines are needed.
A library that is missing fails with the name of the package that has it.
"""

# target -> (pkg-config names, Debian package)
_PKG_CONFIG = {
    "absl": (
        "absl_base absl_core_headers absl_flat_hash_map absl_flat_hash_set absl_inlined_vector absl_span " +
        "absl_strings absl_str_format absl_cord absl_status absl_statusor absl_synchronization absl_time " +
        "absl_flags absl_flags_reflection absl_flags_usage absl_symbolize absl_failure_signal_handler absl_any_invocable",
        "libabsl-dev",
    ),
    "protobuf": ("protobuf", "libprotobuf-dev"),
    "grpc": ("grpc++ absl_synchronization", "libgrpc++-dev"),
    "openssl": ("libcrypto", "libssl-dev"),
    "spdlog": ("spdlog", "libspdlog-dev"),
    "json": ("nlohmann_json", "nlohmann-json3-dev"),
    "zlib": ("zlib", "zlib1g-dev"),
    "isal": ("libisal", "libisal-dev"),
    "highway": ("libhwy", "libhwy-dev"),
}

# Libraries without a pkg-config file, or whose file has nothing to say: target -> (header, link options, package)
_PLAIN = {
    "catch2": ("catch2/catch.hpp", [], "catch2"),
    "onednn": ("dnnl.hpp", ["-ldnnl", "-lgomp"], "libdnnl-dev"),
    "grpc_channelz": ("grpcpp/ext/channelz_service_plugin.h", ["-lgrpcpp_channelz"], "libgrpc++-dev"),
    "grpc_reflection": ("grpcpp/ext/proto_server_reflection_plugin.h", ["-lgrpc++_reflection"], "libgrpc++-dev"),
}

def _library(name, linkopts, defines, deps = []):
    return """cc_library(
    name = "{}",
    linkopts = {},
    defines = {},
    deps = {},
    visibility = ["//visibility:public"],
)
""".format(name, repr(linkopts), repr(defines), repr(deps))

def _system_impl(ctx):
    pkg_config = ctx.which("pkg-config")
    if not pkg_config:
        fail("pkg-config is not installed. Remedy: apt-get install pkg-config (./lockstep installs all that is missing)")
    targets = ["load(\"@rules_cc//cc:defs.bzl\", \"cc_library\")\n"]
    for name, (modules, package) in _PKG_CONFIG.items():
        result = ctx.execute([pkg_config, "--libs", "--cflags"] + modules.split(" "))
        if result.return_code != 0:
            fail("{}: {} Remedy: apt-get install {}".format(name, result.stderr.strip(), package))
        linkopts = []
        defines = []
        for flag in result.stdout.strip().split(" "):
            if flag.startswith("-l") or flag.startswith("-pthread"):
                if flag not in linkopts:
                    linkopts.append(flag)
            elif flag.startswith("-D"):
                if flag[2:] not in defines:
                    defines.append(flag[2:])
        targets.append(_library(name, linkopts, defines))
    for name, (header, linkopts, package) in _PLAIN.items():
        found = [p for p in ("/usr/include/", "/usr/include/x86_64-linux-gnu/", "/usr/include/aarch64-linux-gnu/") if ctx.path(p + header).exists]
        if not found:
            fail("{}: {} not found. Remedy: apt-get install {}".format(name, header, package))
        targets.append(_library(name, linkopts, []))
    ctx.file("WORKSPACE", "workspace(name = \"{}\")\n".format(ctx.name))
    ctx.file("BUILD", "\n".join(targets))

system_libraries = repository_rule(
    implementation = _system_impl,
    local = True,
    environ = ["PATH", "PKG_CONFIG_PATH"],
)
