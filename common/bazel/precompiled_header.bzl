"""precompiled_header: what nearly every unit includes, read once by GCC (with --define=precompiled=on, part of --config=unity).

It saves two fifths of the time in which a library is compiled. Each file still names what it includes: without the define, as in
the build that editors and `./lockstep check build` use, nothing is precompiled. GCC takes the file only for units with the same options
that change code; -Winvalid-pch makes it an error where it does not.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")

def _precompiled_header_impl(ctx):
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    precompiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
    ctx.actions.write(header, "".join(["#include <%s>\n" % name for name in ctx.attr.headers]))
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    libraries = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]).compilation_context
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts + ["-x", "c++-header"],
        preprocessor_defines = libraries.defines,
        source_file = header.path,
        output_file = precompiled.path,
        use_pic = True,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(feature_configuration = features, action_name = CPP_COMPILE_ACTION_NAME),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        inputs = depset([header], transitive = [toolchain.all_files, libraries.headers]),
        outputs = [precompiled],
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        mnemonic = "PrecompiledHeader",
        progress_message = "Precompiling headers " + ctx.label.name,
    )
    files = cc_common.create_compilation_context(headers = depset([header, precompiled]))
    return [
        DefaultInfo(files = depset([header, precompiled])),
        CcInfo(compilation_context = files),
    ]

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "headers": attr.string_list(mandatory = True),  # as between < and >
        "copts": attr.string_list(),
        "deps": attr.label_list(providers = [CcInfo]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def precompiled_by(name):
    """The copts and deps with which a target is compiled after the header `name` of this package."""
    options = ["-Winvalid-pch", "-include", "common/bazel/%s.h" % name]
    return (
        select({"//common/bazel:precompiled": options, "//conditions:default": []}),
        select({"//common/bazel:precompiled": ["//common/bazel:" + name], "//conditions:default": []}),
    )
